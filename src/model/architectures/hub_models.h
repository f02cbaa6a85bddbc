// The families that a hub's directory can hold, each described beside its architecture.
#pragma once

#include "src/model/hub_model.h"

namespace llm {

extern const HubModel kHubLlama;
extern const HubModel kHubGemma3;

}  // namespace llm
