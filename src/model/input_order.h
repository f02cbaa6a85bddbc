// Linear layers whose columns are in an order of their own, as GPTQ's desc_act leaves them: beside
// "blk.0.attn_q.weight" a tensor "blk.0.attn_q.order" says which input each column reads.
#pragma once

#include "absl/status/status.h"
#include "src/loader/weight_source.h"
#include "src/model/model_config.h"
#include "src/model/weights.h"

namespace llm {

inline constexpr char kOrderSuffix[] = ".order";

bool HasInputOrders(const WeightSource& source);

// INVALID_ARGUMENT, naming the tensor, for a column that is none of the inputs; UNIMPLEMENTED for
// weights that read one input in different orders. `device` holds the weights; null: the host.
absl::Status CheckInputOrders(const Weights& weights, const ModelConfig& config, Device* device);

}  // namespace llm
