// Memory that the host's code cannot reach, and the order in which work on it happens. A backend
// without a device works on host memory: nothing here is used then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llm {

// Work that a stream recorded instead of doing it, with the memory that it names, which outlives
// it.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

// Work is done in the order in which it was put here, at the latest when Wait returns, or WaitFor a
// mark behind it. Used by one
// thread at a time. A call fails with what the device reports then, be it of earlier work.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  // Begins a step: ops copy the host's arrays of a step to the device once, up to the memory that
  // the stream was created with. `ahead`: the copies need not wait for the work that is on the
  // stream; for that, the stream was created with memory to stage them.
  virtual absl::Status Begin(bool ahead) = 0;

  // From now on linear layers may be the vendor's library's, whose order of additions depends on
  // the batch. `memory` is the device's, as long as the backend asks, and outlives the stream.
  // UNAVAILABLE, saying why, where the library is not here: nothing changes.
  virtual absl::Status UseLibrary(std::byte* /*memory*/, size_t /*bytes*/) {
    return absl::UnavailableError("the device has no library of linear layers");
  }
  // What that library would not do, or failed at, since the last call, for the log: a line each.
  virtual std::vector<std::string> TakeNotices() { return {}; }

  // Between the device and the host. Pinned host memory is read, or filled, when that work is done,
  // at the latest when Wait returns, other memory before the call does.
  virtual absl::Status CopyIn(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status CopyOut(void* to, const void* from, size_t bytes) = 0;
  // Within the device; the ranges do not overlap.
  virtual absl::Status CopyWithin(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status Clear(void* memory, size_t bytes) = 0;

  // Waits for all that is on the stream. A failure that repeats itself is the device's end.
  virtual absl::Status Wait() = 0;
  // Waits for what was on the stream when Mark was called last with this mark.
  virtual absl::Status Mark(int /*mark*/) { return absl::OkStatus(); }
  virtual absl::Status WaitFor(int /*mark*/) { return Wait(); }
  // What the device took from one to the other, both waited for.
  virtual absl::StatusOr<int64_t> NsBetween(int /*begin*/, int /*end*/) {
    return absl::UnimplementedError("no clock");
  }
  static constexpr int kNumMarks = 3;

  // Within a step, ops that are put here between these two are recorded and not done; copies are
  // refused. Where BeginRecording succeeded, EndRecording is called, whatever fails in between.
  virtual absl::Status BeginRecording() { return absl::UnimplementedError("no graphs"); }
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() {
    return absl::UnimplementedError("no graphs");
  }
  // Puts what the graph recorded here on this stream. Of the step's arrays that its ops copied to
  // the device it takes what they hold now, from where they lay then. When this fails, nothing of
  // it is done.
  virtual absl::Status Launch(const DeviceGraph& /*graph*/) {
    return absl::UnimplementedError("no graphs");
  }
};

// For the arrays of a step, and beside them; it outlives the stream.
struct UploadMemory {
  std::byte* device = nullptr;  // `bytes`
  std::byte* pinned = nullptr;  // kStages * bytes
  std::byte* staged = nullptr;  // likewise, the device's; null: no step begins ahead
  size_t bytes = 0;
  // The device's, for activations that a linear layer rounds for all of its blocks; null: each
  // block rounds them by itself.
  std::byte* rounded = nullptr;
  size_t rounded_bytes = 0;

  // Those of a step are written while those of the step before are still read.
  static constexpr size_t kStages = 2;
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;
  virtual absl::StatusOr<size_t> FreeBytes() const = 0;
  // Aligned to 256 bytes, contents undefined. RESOURCE_EXHAUSTED, naming `what`, the bytes and
  // those that are free. `bytes` > 0.
  virtual absl::StatusOr<std::byte*> Allocate(size_t bytes, absl::string_view what) = 0;
  virtual void Free(std::byte* memory) = 0;
  // Host memory that the device reads and writes by itself; likewise.
  virtual absl::StatusOr<std::byte*> AllocatePinned(size_t bytes, absl::string_view what) = 0;
  virtual void FreePinned(std::byte* memory) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> CreateStream(
      const UploadMemory& uploads) = 0;
};

}  // namespace llm
