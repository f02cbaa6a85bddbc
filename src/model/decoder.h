// The forward pass of a decoder-only transformer: tokens of a ragged batch in, logits of some rows
// out.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kv_layout.h"
#include "src/model/batch.h"
#include "src/model/decoder_workspace.h"
#include "src/model/model.h"
#include "src/tensor/stream.h"

namespace llm {

class Decoder {
 public:
  // The model and the workspace's memory outlive the decoder. `workspace` was laid out with
  // `shape`.
  Decoder(const Model* model, const Stream& stream, const DecoderShape& shape,
          DecoderWorkspace workspace);

  // Stores the batch's keys and values at its slots, and writes logits [batch.logit_rows,
  // vocab_size] and, behind as many rows in the workspace's head_normed, the hidden states
  // [batch.hidden_rows, hidden_size] after the final norm. Allocates nothing. kv: one view a layer.
  // INVALID_ARGUMENT for a token id outside the vocabulary or a slot outside the blocks. REQUIRES:
  // the batch is within the shape and not empty.
  absl::Status Forward(const Batch& batch, absl::Span<const KvLayerView> kv, float* logits);

 private:
  // Which forms of its input a group of linear layers reads.
  struct Forms {
    bool values = false;
    bool quants = false;
  };
  struct LayerForms {
    Forms qkv;
    Forms latent_q;
    Forms o;
    Forms feed_forward;  // all that read the normed input
    Forms down;
    Forms expert_gate_up;
    Forms expert_down;
    Forms shared_gate_up;
    Forms shared_down;
  };

  // `slot` with the forms that are wanted, for a number of rows.
  static Activations Select(const Activations& slot, Forms forms, int64_t rows);
  static LinearOutput To(const LinearWeight& linear, float* out);
  // The stream, on which the next kernel is an op of this name.
  const Stream& Op(const char* name) const;
  LinearParams LinearOf(const Activations& activations,
                        absl::Span<const LinearOutput> outputs) const;
  ExpertLinearParams ExpertsOf(const Activations& activations, absl::Span<const int32_t> begin,
                               absl::Span<const ExpertOutput> outputs) const;
  Forms ReadBy(std::initializer_list<const PackedWeight*> weights) const;
  // The forms in which what a weight with this order reads is produced.
  static Forms Produced(const float* order, Forms read);
  // What is in `slot` as a weight with this order reads it; `begin` as of ReorderParams.
  absl::StatusOr<Activations> InOrder(const float* order, const Activations& slot, Forms read,
                                      int64_t rows, absl::Span<const int32_t> begin = {});
  absl::Status RopeTables(const Batch& batch);
  absl::Status LongropeTable(const Batch& batch, const RopeVariant& rope, float* table);
  absl::Status Attention(size_t layer, const Batch& batch, const KvLayerView& kv,
                         const float* update);
  absl::Status PlainQkv(size_t layer, int64_t rows);
  // Latent attention: q, k and v for the cache's form, and attended values out of it.
  absl::Status LatentQkv(size_t layer, int64_t rows);
  absl::Status LatentQueries(const LayerWeights& weights, int64_t rows);
  absl::Status LatentKeys(const LayerWeights& weights, int64_t rows);
  absl::Status LatentValues(size_t layer, int64_t rows);
  absl::Status PerHead(const ExpertWeight& heads, float* in, int64_t inputs, int64_t outputs,
                       int64_t rows, const char* op);
  struct Block {
    float* data = nullptr;  // null, as a source: zeros
    int64_t outer = 0;      // floats from one to the next
    int64_t inner = 0;
  };
  absl::Status Copy(const Block& from, const Block& to, int64_t outer, int64_t inner, int64_t cols);
  absl::Status FeedForward(size_t layer, int64_t rows);
  // One gated feed-forward network, into ws.update.
  struct GatedWeights {
    const LinearWeight& gate;
    const LinearWeight& up;
    const LinearWeight& down;
  };
  absl::Status Gated(const GatedWeights& weights, const GatedWorkspace& workspace, Forms gate_up,
                     Forms down, int64_t rows);
  absl::Status Experts(size_t layer, int64_t rows);
  absl::Status RunExperts(size_t layer, int64_t rows);
  absl::Status PostNorm(const float* weight, int64_t rows);
  absl::Status GatherRows(absl::Span<const int32_t> rows, size_t first);
  absl::Status Head(const Batch& batch, float* logits);

  const Model& model_;
  const ModelConfig& config_;
  const KernelTable& kernels_;
  const Stream stream_;
  const DecoderShape shape_;
  const DecoderWorkspace workspace_;
  std::vector<LayerForms> forms_;  // [num_layers]
  Forms head_forms_;
};

}  // namespace llm
