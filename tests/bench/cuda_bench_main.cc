// Figures of the CUDA backend's kernels on a GPU, an object of JSON a line, the device's limits
// first. Usage: cuda_bench [--quick] PART ..., parts of decode, prefill, attention, logits.
// Exit code 1: a figure could not be had, and says why in its place. README.md says what is what.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status_macros.h"
#include "tests/bench/cuda_bench.h"

#ifdef INLAY_REHEARSAL
#include "tests/cuda_on_cpu/gpu.h"
#endif

namespace llm::bench {
namespace {

constexpr size_t kUploadBytes = size_t{1} << 22;  // a step's arrays: block tables, mostly

constexpr std::pair<const char*, bool (*)(const Bench&)> kParts[] = {{"decode", BenchDecode},
                                                                     {"prefill", BenchPrefill},
                                                                     {"attention", BenchAttention},
                                                                     {"logits", BenchLogits}};

absl::StatusOr<bool> Run(bool quick, const std::vector<std::string>& parts) {
  LLM_ASSIGN_OR_RETURN(const StreamOwner stream, CreateStream());
  LLM_ASSIGN_OR_RETURN(const DeviceMemoryOwner device, AllocateDevice(kUploadBytes, "uploads"));
  LLM_ASSIGN_OR_RETURN(const PinnedMemoryOwner pinned,
                       AllocatePinned(UploadMemory::kStages * kUploadBytes, "uploads"));
  const UploadMemory memory = {.device = static_cast<std::byte*>(device.get()),
                               .pinned = static_cast<std::byte*>(pinned.get()),
                               .bytes = kUploadBytes};
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<StepUploads> uploads, StepUploads::Create(memory));
  Bench bench = {.quick = quick, .stream = stream.get(), .uploads = uploads.get(), .limits = {}};
  LLM_RETURN_IF_ERROR(MeasureLimits(&bench));
  PrintLimits(bench);
  bool ok = true;
  for (const std::string& part : parts) {
    for (const auto& [name, run] : kParts) {
      if (part == name) ok = run(bench) && ok;
    }
  }
  return ok;
}

bool IsPart(const std::string& part) {
  for (const auto& [name, run] : kParts) {
    if (part == name) return true;
  }
  return false;
}

int Main(const std::vector<std::string>& arguments) {
  bool quick = false;
  std::vector<std::string> parts;
  for (const std::string& argument : arguments) {
    quick = quick || argument == "--quick";
    if (argument == "--quick") continue;
    if (!IsPart(argument)) {
      std::fprintf(stderr, "usage: cuda_bench [--quick] decode|prefill|attention|logits ...\n");
      return 2;
    }
    parts.push_back(argument);
  }
#ifdef INLAY_REHEARSAL
  cuda_on_cpu::Gpu::Get().set_capability(8, 9);  // with fp8
  quick = true;
#endif
  const absl::StatusOr<bool> ok = Run(quick, parts);
  if (ok.ok()) return *ok ? 0 : 1;
  std::fprintf(stderr, "cuda_bench: %s\n", std::string(ok.status().message()).c_str());
  return 1;
}

}  // namespace
}  // namespace llm::bench

int main(int argc, char** argv) { return llm::bench::Main({argv + 1, argv + argc}); }
