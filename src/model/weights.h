// The weights of a model in the form that one backend wants, and the one list that says which
// tensors they come from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel_table.h"
#include "src/base/thread_pool.h"
#include "src/loader/file_mapping.h"
#include "src/loader/weight_source.h"
#include "src/model/model_config.h"
#include "src/tensor/buffer.h"
#include "src/tensor/device.h"

namespace llm {

struct LinearWeight {
  PackedWeight weight;          // [outputs, inputs]
  const float* bias = nullptr;  // [outputs] or null
  // [inputs] or null: which input each column reads, where it is not its own. The same for weights
  // that read one input; of the parts of a fused weight, the first has it.
  const float* order = nullptr;
};

// One weight for each expert, expert after expert: [num_experts * outputs, inputs].
struct ExpertWeight {
  PackedWeight weight;
  const float* bias = nullptr;  // [num_experts, outputs] or null
  // [num_experts, inputs] or null: as of a LinearWeight, one for each expert.
  const float* order = nullptr;
};

struct ExpertsWeights {
  LinearWeight router;                    // [num_experts, hidden_size]; no rows: a dense layer
  const float* selection_bias = nullptr;  // [num_experts] or null
  ExpertWeight gate;                      // outputs: ffn_size of an expert
  ExpertWeight up;                        // likewise
  ExpertWeight down;                      // outputs: hidden_size
  LinearWeight shared_gate;               // [shared_ffn_size, hidden_size]; no rows: none
  LinearWeight shared_up;                 // likewise
  LinearWeight shared_down;               // [hidden_size, shared_ffn_size]
};

struct LayerWeights {
  const float* attention_norm = nullptr;  // [hidden_size]
  LinearWeight q;                         // [num_heads * head_dim, hidden_size]
  LinearWeight k;                         // [num_kv_heads * head_dim, hidden_size]
  LinearWeight v;                         // [num_kv_heads * head_dim, hidden_size]
  LinearWeight o;                         // [hidden_size, num_heads * head_dim]
  // Of latent attention. q is then [num_heads * (key_dim + rope_dim), query_rank or hidden_size], o
  // reads num_heads * value_dim.
  LinearWeight q_a;                            // [query_rank, hidden_size]; no rows: none
  const float* q_a_norm = nullptr;             // [query_rank] or null
  LinearWeight kv_a;                           // [rank + rope_dim, hidden_size]
  const float* kv_a_norm = nullptr;            // [rank]
  ExpertWeight k_b;                            // a head: [rank, key_dim]
  ExpertWeight v_b;                            // a head: [value_dim, rank]
  const float* q_norm = nullptr;               // [head_dim] or null
  const float* k_norm = nullptr;               // [head_dim] or null
  const float* sinks = nullptr;                // [num_heads] or null
  const float* post_attention_norm = nullptr;  // [hidden_size] or null
  const float* ffn_norm = nullptr;             // [hidden_size]
  LinearWeight gate;                           // [ffn_size, hidden_size]
  LinearWeight up;                             // [ffn_size, hidden_size]
  LinearWeight down;                           // [hidden_size, ffn_size]
  const float* post_ffn_norm = nullptr;        // [hidden_size] or null
  ExpertsWeights experts;                      // in the place of gate, up and down
  PackedWeight fused_qkv;                      // what q, k and v are parts of, in some files
  PackedWeight fused_gate_up;                  // likewise
};

// Pointers are into the backend's memory, which the host's code may not be able to read.
struct Weights {
  PackedWeight embedding;               // [vocab_size, hidden_size]
  PackedWeight head;                    // [vocab_size, hidden_size]; the embedding itself when tied
  const float* output_norm = nullptr;   // [hidden_size]
  const float* rope_factors = nullptr;  // [rope_dim / 2] or null
  const float* short_rope_factors = nullptr;  // [rope_dim / 2] or null
  const float* long_rope_factors = nullptr;   // [rope_dim / 2] or null
  std::vector<LayerWeights> layers;           // [num_layers]
  absl::Span<const std::byte> bytes;          // what all of the pointers above point into
  Buffer storage;                             // that, unless it is mapped
  FileMapping mapping;                        // that, if it is
  int64_t read_ns = 0;    // that loading threads spent reading the file, summed over them
  int64_t repack_ns = 0;  // likewise, packing
  int64_t check_ns = 0;   // likewise, computing checksums
};

struct WeightsOptions {
  const KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;
  Allocator* allocator = nullptr;  // counts a device's memory as well
  // Where the weights go, which the kernels opened; null: host memory, whatever the kernels. Kept
  // by the model.
  std::shared_ptr<Device> device = nullptr;
  // Work of the caller's that runs once on one of the threads while a pack is read; its error ends
  // the load. Empty: none.
  std::function<absl::Status()> beside = {};
  bool map = false;     // a pack's weights are mapped; INVALID_ARGUMENT for any other source
  bool verify = false;  // its checksums are compared, likewise: DATA_LOSS names the tensor
};

// Called on the loading thread with the file bytes packed so far and in all; an error ends the load
// with it.
using LoadProgress = absl::FunctionRef<absl::Status(uint64_t done_bytes, uint64_t total_bytes)>;

// Bytes that LoadWeights will hold once it is done, from the header alone, with the checks that
// LoadWeights makes: NOT_FOUND for a missing tensor, INVALID_ARGUMENT for a shape ("tensor
// blk.3.attn_q.weight: expected [2048, 2048], file has [2048, 1024]"), UNIMPLEMENTED for a tensor
// that the architecture does not use. For a pack also FAILED_PRECONDITION where it was made for
// another backend, and INVALID_ARGUMENT for a tensor that lies elsewhere than the backend's layout
// has it.
absl::StatusOr<size_t> WeightsBytes(const WeightSource& source, const ModelConfig& config,
                                    const KernelTable& kernels);

struct LoadBytes {
  size_t weights = 0;
  size_t staging = 0;  // beside them, while LoadWeights runs; pinned memory included
};
// The same with all that LoadWeights allocates, unless it maps; on the kernels' device, if they
// have one. UNIMPLEMENTED also for what these kernels lack.
absl::StatusOr<LoadBytes> PlanLoad(const WeightSource& source, const ModelConfig& config,
                                   const KernelTable& kernels, int num_threads);

// Reads and packs everything, through at most 1 MiB (or one tile of rows) of staging memory per
// thread; a pack's weights are read into place. INVALID_ARGUMENT for a scale of MXFP4 or MXFP8 that
// is NaN; other values that are not finite pass: they show up as logits that are not.
absl::StatusOr<Weights> LoadWeights(const WeightSource& source, const ModelConfig& config,
                                    const WeightsOptions& options, LoadProgress progress);

}  // namespace llm
