// llm_model_save and llm_model_save_gguf.
#include "capi/boundary.h"
#include "capi/strings.h"
#include "capi/translate_model.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"
#include "src/engine/save_gguf.h"
#include "src/engine/save_model.h"

namespace llm {
namespace {

using SaveFn = absl::Status (*)(std::unique_ptr<ModelFile> file, const ModelOptions& options,
                                const std::string& path);

absl::Status Save(SaveFn save, const llm_model_source* source, const llm_model_options* options,
                  const char* path, size_t path_size) {
  LLM_RETURN_IF_NULL(source);
  LLM_RETURN_IF_NULL(path);
  ModelOptions translated;
  LLM_RETURN_IF_ERROR(TranslateModelOptions(options, &translated));
  LLM_ASSIGN_OR_RETURN(const std::string path_string, PathFromC(path, path_size));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, FileOfSource(*source, translated.limits));
  return save(std::move(file), translated, path_string);
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_model_save(const llm_model_source* source,
                                     const llm_model_options* options, const char* path,
                                     size_t path_size) {
  return llm::Boundary(
      [&] { return llm::Save(&llm::SaveModel, source, options, path, path_size); });
}

extern "C" llm_status llm_model_save_gguf(const llm_model_source* source,
                                          const llm_model_options* options, const char* path,
                                          size_t path_size) {
  return llm::Boundary([&] { return llm::Save(&llm::SaveGguf, source, options, path, path_size); });
}
