// Timing on a GPU, memory there, and figures beside what the device can do at most.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/launch_stream.h"
#include "kernels/cuda/step_uploads.h"

namespace llm::bench {

struct Times {  // of one call, in microseconds
  double median = 0;
  double least = 0;
  double most = 0;
};

// What the device did at best in this very run. 0: not known.
struct Limits {
  double copy_bytes_per_s = 0;  // read and written by a copy within the device
  double bf16_per_s = 0;        // multiplications and additions of cuBLASLt's products
  double fp8_per_s = 0;
  double int8_per_s = 0;
};

// What every part of the program works with.
struct Bench {
  bool quick = false;  // tiny shapes, each once: to see that all of it runs
  cudaStream_t stream = nullptr;
  StepUploads* uploads = nullptr;  // of one step: arrays go up at the first call that reads them
  Limits limits;
};

// Calls `work` with 0, 1, 2, ... for a while, in several rounds behind a warm-up. `work` puts one
// call on the stream. Times are those of the device.
absl::StatusOr<Times> Measure(const Bench& bench, const std::function<absl::Status(int)>& work);
// The same for kernels of our own, which a step of decodes launches as one graph: none waits for
// the host. `work` goes to the stream that it is given.
absl::StatusOr<Times> MeasureInGraph(const Bench& bench,
                                     const std::function<absl::Status(int, LaunchStream)>& work);

// Device memory with `bytes` of arbitrary, but finite numbers of any format: bytes of 0x11.
absl::StatusOr<DeviceMemoryOwner> Filled(size_t bytes, const char* what);

// Times `bytes` so often that together they are in no cache; at least 1.
int64_t CopiesBeyondCaches(const Bench& bench, int64_t bytes);

// Of CopyRate and, where the library is here, cuBLASLt's largest products.
absl::Status MeasureLimits(Bench* bench);

// One object of the output. Its floor is the slower of the bytes at the rate of a copy and the
// operations at cuBLASLt's best rate of their kind.
struct Figure {
  std::string what;   // the op, and the format that matters: "linear Q4_K"
  std::string shape;  // in the words of the table in kernels/README.md: "gate_up, 1 row"
  double bytes = 0;   // that it has to read and write
  double operations = 0;
  double operations_per_s = 0;  // of the limits
  int passes = 1;               // through tensor cores that each product takes
  std::vector<std::pair<std::string, double>> more;
};
void PrintLimits(const Bench& bench);
void PrintFigure(const Bench& bench, const Figure& figure, const Times& times);
// In the figure's place.
void PrintFailure(const Figure& figure, const absl::Status& status);

// The parts. False: some figure could not be had, which its place in the output says.
bool BenchDecode(const Bench& bench);
bool BenchPrefill(const Bench& bench);
bool BenchAttention(const Bench& bench);
bool BenchLogits(const Bench& bench);

}  // namespace llm::bench
