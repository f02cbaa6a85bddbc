// A backend: one function per op. Model code calls these and never asks where it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/attention.h"
#include "kernels/embed.h"
#include "kernels/expert_linear.h"
#include "kernels/gate.h"
#include "kernels/linear.h"
#include "kernels/moe.h"
#include "kernels/pack.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_stats.h"
#include "kernels/rows.h"

namespace llm {

struct KernelTable {
  const char* name;           // "reference", "generic", "avx2", "avx512"
  const char* packed_layout;  // of what pack_rows writes: another name with any change of a byte
  PackedBytesFn packed_bytes;
  PackRowsFn pack_rows;
  LinearFn linear;
  EmbedFn embed;
  RmsNormFn rms_norm;
  GateFn gate;
  RopeTableFn rope_table;
  RopeKvWriteFn rope_kv_write;
  AttentionFn attention;
  AttentionWorkspaceFn attention_workspace_bytes;
  RowStatsFn row_stats;
  SoftCapFn soft_cap;
  QuantizeFn quantize;
  CopyBlocksFn copy_blocks;
  ReorderFn reorder;
  MoeRouteFn moe_route;
  MoeGatherFn moe_gather;
  MoeCombineFn moe_combine;
  ExpertLinearFn expert_linear;
};

// What saved weights are bound to: a backend, since answers differ by it, and its layout.
std::string NumericsId(const KernelTable& kernels);

// Every backend that this machine can run, fastest first; "reference" is always the last.
std::vector<const KernelTable*> AvailableKernels();

// By name; "" is the fastest. INVALID_ARGUMENT lists the names that this machine has.
absl::StatusOr<const KernelTable*> FindKernels(absl::string_view name);

}  // namespace llm
