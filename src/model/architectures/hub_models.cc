// The table of families that a hub's directory can hold: a line each.
#include "src/model/architectures/hub_models.h"

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

constexpr const HubModel* kHubModels[] = {
    &kHubLlama,  &kHubMistral, &kHubMixtral, &kHubQwen2,  &kHubQwen3,      &kHubQwen3Moe,
    &kHubGemma2, &kHubGemma3,  &kHubPhi3,    &kHubGptOss, &kHubDeepseekV2, &kHubDeepseekV3,
};

}  // namespace

const HubModel* FindHubModel(absl::string_view model_type) {
  for (const HubModel* model : kHubModels) {
    if (model_type == model->model_type) return model;
  }
  return nullptr;
}

std::string HubModelNames() {
  std::string names;
  for (const HubModel* model : kHubModels) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", model->model_type);
  }
  return names;
}

}  // namespace llm
