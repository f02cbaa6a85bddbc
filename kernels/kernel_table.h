// A backend: one function per op. Model code calls these and never asks where it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/attention.h"
#include "kernels/dense_shape.h"
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
#include "kernels/sample.h"
#include "src/tensor/device.h"

namespace llm {

// UNAVAILABLE, saying why, where there is no such device; INVALID_ARGUMENT, saying how many there
// are, where there are fewer than index + 1.
using OpenDeviceFn = absl::StatusOr<std::shared_ptr<Device>> (*)(uint32_t index);
// UNIMPLEMENTED, naming the format, where `linear`, `embed` and `expert_linear` have no kernel.
using CheckFormatFn = absl::Status (*)(WeightFormat format);

// Where open_device is set, pointers in params are the device's memory, and streams have a
// DeviceStream; spans of batch arrays and attention's block_table are host memory all the same,
// which stays as it is until the step's work is done. An op may then be null: it is not there yet.
struct KernelTable {
  const char* name;           // "reference", "generic", "avx2", "avx512", "cuda"
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
  SampleFn sample;
  SoftCapFn soft_cap;
  QuantizeFn quantize;
  CopyBlocksFn copy_blocks;
  ReorderFn reorder;
  MoeRouteFn moe_route;
  MoeGatherFn moe_gather;
  MoeCombineFn moe_combine;
  ExpertLinearFn expert_linear;
  OpenDeviceFn open_device = nullptr;                // null: host memory
  CheckFormatFn check_format = nullptr;              // null: every format
  DenseWorkspaceFn dense_workspace_bytes = nullptr;  // null: streams have no UseLibrary
};

// What saved weights are bound to: a backend, since answers differ by it, and its layout.
std::string NumericsId(const KernelTable& kernels);

// Every backend on host memory that this machine can run, fastest first; "reference" is always the
// last.
std::vector<const KernelTable*> AvailableKernels();

// One of these by name; "" is the fastest. INVALID_ARGUMENT lists the names that this machine has.
absl::StatusOr<const KernelTable*> FindKernels(absl::string_view name);

// The CUDA backend; whether there is a GPU is open_device's to say. UNAVAILABLE: the library was
// built without it.
absl::StatusOr<const KernelTable*> FindCudaKernels();

}  // namespace llm
