// llm_embed.
#include "absl/strings/str_cat.h"
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/text_or_ids.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status ReadPooling(uint32_t value, Pooling* pooling) {
  if (value > LLM_POOLING_LAST) {
    return absl::InvalidArgumentError(
        absl::StrCat("pooling: ", value, " is none of LLM_POOLING_*"));
  }
  *pooling = value == LLM_POOLING_LAST ? Pooling::kLast : Pooling::kMean;
  return absl::OkStatus();
}

absl::Status TranslateEmbed(const llm_embed_request* given, EmbedSpec* spec) {
  llm_embed_request c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_embed_request", given, &c));
  if (c.reserved != 0) return absl::UnimplementedError("reserved: reserved for a later version");
  LLM_RETURN_IF_ERROR(ReadTextOrIds("embed", c, spec));
  LLM_RETURN_IF_ERROR(ReadSwitch("normalize", c.normalize, true, &spec->normalize));
  return ReadPooling(c.pooling, &spec->pooling);
}

absl::Status Embed(llm_engine* engine, const llm_embed_request* request, float* values,
                   size_t capacity, size_t* count) {
  LLM_RETURN_IF_NULL(engine);
  LLM_RETURN_IF_NULL(request);
  LLM_RETURN_IF_NULL(count);
  LLM_RETURN_IF_ERROR(CheckArray("values", values, capacity));
  EmbedSpec spec;
  LLM_RETURN_IF_ERROR(CountIfRejected(engine, TranslateEmbed(request, &spec)));
  LLM_ASSIGN_OR_RETURN(const std::vector<float> embedded, engine->engine->Embed(spec));
  CopyOut(embedded.data(), embedded.size(), values, capacity, count);
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_embed(llm_engine* engine, const llm_embed_request* request, float* values,
                                size_t capacity, size_t* count) {
  return llm::Boundary([&] { return llm::Embed(engine, request, values, capacity, count); });
}
