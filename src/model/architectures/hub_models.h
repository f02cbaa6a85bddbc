// The families that a hub's directory can hold, each described beside its architecture.
#pragma once

#include "src/model/hub_model.h"

namespace llm {

extern const HubModel kHubLlama;
extern const HubModel kHubMistral;
extern const HubModel kHubMixtral;
extern const HubModel kHubQwen2;
extern const HubModel kHubQwen3;
extern const HubModel kHubQwen3Moe;
extern const HubModel kHubGemma2;
extern const HubModel kHubGemma3;
extern const HubModel kHubPhi3;
extern const HubModel kHubGptOss;
extern const HubModel kHubDeepseekV2;
extern const HubModel kHubDeepseekV3;

}  // namespace llm
