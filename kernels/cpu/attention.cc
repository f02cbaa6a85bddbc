// Cuts a batch into blocks of rows per (sequence, kv head), and blocks into splits when there are
// too few of them.
#include "kernels/attention.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/checks.h"
#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

// Partials of at most this many query tokens are kept for splits in tasks of their own; longer
// chunks have rows enough.
constexpr int kMaxSplitTokens = 8;

static_assert(kAttentionSplitKeys == kAttentionSplit && kAttentionMaxHeadDim == kMaxHeadDim);

size_t Align(size_t bytes) { return RoundUp<size_t>(bytes, 64); }
size_t PartialBytes(size_t num_rows, size_t head_dim) {
  return Align(num_rows * (head_dim + 2) * sizeof(float));
}
int MaxRows(int head_dim) {
  return std::clamp(kAttentionUnitFloats / std::max(head_dim, 1), 8, kAttentionMaxRows);
}
static_assert(8 * kMaxHeadDim <= kAttentionMaxFloats);
size_t WorkerBytes(int head_dim) {
  return 2 * PartialBytes(static_cast<size_t>(MaxRows(head_dim)), static_cast<size_t>(head_dim));
}
int NumSplits(int64_t context) {
  return static_cast<int>(CeilDiv<int64_t>(context, kAttentionSplit));
}

AttentionPartial PartialAt(std::byte* memory, int num_rows) {
  float* floats = reinterpret_cast<float*>(memory);
  // Values first: they are the ones that want alignment, but their length depends on the caller.
  return {floats, floats + num_rows, floats + 2 * num_rows};
}

// How the batch is cut. A unit is one block of rows; it is numbered by sequence, then from its last
// rows to its first, so that the longest of a sequence start first, then by kv head.
class Plan {
 public:
  Plan(const AttentionParams& p, int num_workers) : p_(p) {
    rows_per_unit_ = MaxRows(p.kv.layout.head_dim);
    while (rows_per_unit_ > 8 && CountUnits() < 2 * num_workers) rows_per_unit_ /= 2;
  }

  int64_t CountUnits() const {
    int64_t units = 0;
    for (size_t s = 0; s < p_.context_lens.size(); ++s) units += UnitsOf(s);
    return units;
  }
  int64_t UnitsOf(size_t sequence) const {
    const int64_t rows = int64_t{p_.query_start[sequence + 1] - p_.query_start[sequence]} * group();
    return CeilDiv<int64_t>(rows, rows_per_unit_) * p_.kv.layout.num_kv_heads;
  }
  // `ends[s]` is the number of units of sequences up to and including s.
  void FillUnitEnds(int64_t* ends) const {
    int64_t units = 0;
    for (size_t s = 0; s < p_.context_lens.size(); ++s) ends[s] = units += UnitsOf(s);
  }

  struct Unit {
    AttentionBlock block;
    int64_t first_element;  // of the output, for row 0 of the sequence and kv head
    int first_split;
    int end_split;
  };
  Unit Find(const int64_t* ends, int64_t unit) const;

 private:
  int group() const { return p_.num_heads / p_.kv.layout.num_kv_heads; }

  const AttentionParams& p_;
  int rows_per_unit_;
};

Plan::Unit Plan::Find(const int64_t* ends, int64_t unit) const {
  const KvLayout& layout = p_.kv.layout;
  const int64_t* end = std::upper_bound(ends, ends + p_.context_lens.size(), unit);
  const size_t sequence = static_cast<size_t>(end - ends);
  const int64_t from_last = *end - 1 - unit;  // counts from the sequence's last unit
  const int kv_head = static_cast<int>(from_last % layout.num_kv_heads);
  const int row_begin = static_cast<int>(from_last / layout.num_kv_heads) * rows_per_unit_;
  const int first_token = p_.query_start[sequence];
  const int num_tokens = p_.query_start[sequence + 1] - first_token;
  const int64_t first_column = int64_t{kv_head} * group() * layout.head_dim;
  const AttentionBlock block = {
      .q = p_.q + first_token * p_.q_stride + first_column,
      .q_stride = p_.q_stride,
      .group = group(),
      .row_begin = row_begin,
      .num_rows = std::min(rows_per_unit_, num_tokens * group() - row_begin),
      .first_position = p_.context_lens[sequence] - num_tokens,
      .window = p_.window,
      .scale = layout.constant_scales ? p_.scale * p_.kv.key_scale : p_.scale,
      .soft_cap = p_.soft_cap,
      .sinks = p_.sinks != nullptr ? p_.sinks + kv_head * group() : nullptr,
      .head_dim = layout.head_dim,
      .blocks = p_.block_table + static_cast<int64_t>(sequence) * p_.max_blocks,
      .base = p_.kv.base + static_cast<size_t>(kv_head) * layout.head_bytes(),
      .block_bytes = layout.block_bytes(),
      .block_size = layout.block_size,
      .dtype = layout.dtype,
      .values_offset = layout.values_offset(),
      .key_scales_offset = layout.key_scales_offset(),
      .value_scales_offset = layout.value_scales_offset(),
      .token_scales = layout.scaled() && layout.dtype != DType::kI4,
      .value_scale = layout.constant_scales ? p_.kv.value_scale : 1.0f,
  };
  return {block, first_token * p_.output.cols + first_column, block.FirstKey(0) / kAttentionSplit,
          block.Position(block.num_rows - 1) / kAttentionSplit + 1};
}

// The workspace: unit ends, two partials per worker, the output in f32 when it cannot be quantised
// head by head, and partials of splits, as many as fit.
struct Workspace {
  int64_t* unit_ends;
  std::byte* workers;
  float* values;  // null: not needed
  std::byte* partials;
  size_t partials_bytes;
};

// Heads of 16 mod 32 dimensions share a group of 32 columns with a neighbour, so that a row is
// quantised as a whole.
bool QuantisesRows(const Activations& output, int head_dim) {
  return output.quants != nullptr && head_dim % kActivationGroup != 0;
}

size_t FixedBytes(int64_t num_sequences, int num_workers, int head_dim, int64_t value_count) {
  return Align(static_cast<size_t>(num_sequences) * sizeof(int64_t)) +
         static_cast<size_t>(num_workers) * WorkerBytes(head_dim) +
         Align(static_cast<size_t>(value_count) * sizeof(float));
}

absl::StatusOr<Workspace> CutWorkspace(const AttentionParams& p, int num_workers) {
  const int head_dim = p.kv.layout.head_dim;
  const int64_t num_sequences = static_cast<int64_t>(p.context_lens.size());
  const bool needs_values = QuantisesRows(p.output, head_dim) && p.output.values == nullptr;
  const size_t needed = FixedBytes(num_sequences, num_workers, head_dim,
                                   needs_values ? p.output.rows * p.output.cols : 0);
  if (p.workspace == nullptr || p.workspace_bytes < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention: workspace has ", p.workspace_bytes, " bytes, needs ", needed));
  }
  std::byte* workers = p.workspace + Align(static_cast<size_t>(num_sequences) * sizeof(int64_t));
  std::byte* values = workers + static_cast<size_t>(num_workers) * WorkerBytes(head_dim);
  return Workspace{reinterpret_cast<int64_t*>(p.workspace), workers,
                   needs_values ? reinterpret_cast<float*>(values) : nullptr, p.workspace + needed,
                   p.workspace_bytes - needed};
}

class Launch {
 public:
  Launch(const IsaKernels& isa, const AttentionParams& p, const Workspace& workspace,
         const Stream& stream)
      : isa_(isa), p_(p), workspace_(workspace), stream_(stream), plan_(p, NumWorkers(stream)) {
    plan_.FillUnitEnds(workspace.unit_ends);
    num_units_ = plan_.CountUnits();
    output_ = p.output;
    if (QuantisesRows(p.output, p.kv.layout.head_dim)) {
      output_.quants = nullptr;
      if (output_.values == nullptr) output_.values = workspace.values;
    }
  }

  void Run() {
    const int64_t max_context = *std::max_element(p_.context_lens.begin(), p_.context_lens.end());
    const int max_splits = NumSplits(max_context);
    const int workers = NumWorkers(stream_);
    if (workers > 1 && max_splits > 1 && num_units_ < 2 * workers && FindSlots(max_splits)) {
      RunSplits(max_splits);
    } else {
      RunTasks(stream_, num_units_, [&](int64_t unit, int worker) { RunUnit(unit, worker); });
    }
    if (QuantisesRows(p_.output, p_.kv.layout.head_dim)) {
      RunTasks(stream_, p_.output.rows, [&](int64_t row, int /*worker*/) {
        isa_.quantize_row(p_.output, row, output_.values + row * p_.output.cols);
      });
    }
  }

 private:
  AttentionPartial Scratch(int worker, int which, int num_rows) const {
    const size_t bytes = WorkerBytes(p_.kv.layout.head_dim);
    return PartialAt(workspace_.workers + static_cast<size_t>(worker) * bytes +
                         static_cast<size_t>(which) * bytes / 2,
                     num_rows);
  }

  // One task does all splits of a unit, through the same partials as tasks of their own.
  void RunUnit(int64_t index, int worker) const {
    const Plan::Unit unit = plan_.Find(workspace_.unit_ends, index);
    const AttentionPartial merged = Scratch(worker, 0, unit.block.num_rows);
    const AttentionPartial part = Scratch(worker, 1, unit.block.num_rows);
    const bool single = unit.end_split - unit.first_split == 1;
    for (int split = unit.first_split; split < unit.end_split; ++split) {
      isa_.attend_split(unit.block, split, single ? merged : part);
      if (!single) isa_.merge_split(unit.block, split, part, merged);
    }
    isa_.finish_attention(unit.block, merged, output_, unit.first_element);
  }

  // Slots are as large as the largest unit of this call needs.
  bool FindSlots(int max_splits) {
    int max_rows = 0;
    for (int64_t i = 0; i < num_units_; ++i) {
      max_rows = std::max(max_rows, plan_.Find(workspace_.unit_ends, i).block.num_rows);
    }
    slot_bytes_ =
        PartialBytes(static_cast<size_t>(max_rows), static_cast<size_t>(p_.kv.layout.head_dim));
    const size_t slots = static_cast<size_t>(num_units_) * static_cast<size_t>(max_splits);
    return slots <= workspace_.partials_bytes / slot_bytes_;
  }

  AttentionPartial Slot(int64_t slot, int num_rows) const {
    return PartialAt(workspace_.partials + static_cast<size_t>(slot) * slot_bytes_, num_rows);
  }

  void RunSplits(int max_splits) const {
    RunTasks(stream_, num_units_ * max_splits, [&](int64_t task, int /*worker*/) {
      const Plan::Unit unit = plan_.Find(workspace_.unit_ends, task / max_splits);
      const int split = static_cast<int>(task % max_splits);
      if (split < unit.first_split || split >= unit.end_split) return;
      isa_.attend_split(unit.block, split, Slot(task, unit.block.num_rows));
    });
    RunTasks(stream_, num_units_, [&](int64_t index, int worker) {
      const Plan::Unit unit = plan_.Find(workspace_.unit_ends, index);
      const AttentionPartial merged = Scratch(worker, 0, unit.block.num_rows);
      for (int split = unit.first_split; split < unit.end_split; ++split) {
        isa_.merge_split(unit.block, split, Slot(index * max_splits + split, unit.block.num_rows),
                         merged);
      }
      isa_.finish_attention(unit.block, merged, output_, unit.first_element);
    });
  }

  const IsaKernels& isa_;
  const AttentionParams& p_;
  const Workspace& workspace_;
  const Stream& stream_;
  const Plan plan_;
  Activations output_;  // what blocks of one head can write
  int64_t num_units_ = 0;
  size_t slot_bytes_ = 0;
};

}  // namespace

size_t AttentionWorkspaceBytes(const AttentionShape& shape) {
  const int64_t values = shape.head_dim % kActivationGroup == 0
                             ? 0
                             : int64_t{shape.max_tokens} * shape.num_heads * shape.head_dim;
  const size_t rows = static_cast<size_t>(std::min(shape.max_tokens, kMaxSplitTokens)) *
                      static_cast<size_t>(shape.num_heads);
  return FixedBytes(shape.max_sequences, shape.num_threads, shape.head_dim, values) +
         rows * static_cast<size_t>(NumSplits(shape.max_context)) *
             PartialBytes(1, static_cast<size_t>(shape.head_dim));
}

absl::Status Attention(const IsaKernels& isa, const AttentionParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckAttention(params));
  if (params.output.rows == 0) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const Workspace workspace, CutWorkspace(params, NumWorkers(stream)));
  Launch(isa, params, workspace, stream).Run();
  return absl::OkStatus();
}

}  // namespace llm::cpu
