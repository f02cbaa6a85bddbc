// The emulated device as tests steer it: seeds, failing calls, what went wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/captures.h"
#include "tests/cuda_on_cpu/device_memory.h"
#include "tests/cuda_on_cpu/launch.h"
#include "tests/cuda_on_cpu/shadow/cuda_runtime_api.h"
#include "tests/cuda_on_cpu/work_fiber.h"

namespace llm::cuda_on_cpu {

// A stream. Work is queued and runs when something waits, and not before: who reads a result
// without waiting reads what was there.
struct Queue {
  uint64_t id = 0;
  int device = 0;
  std::deque<std::function<void()>> work;
  uint64_t submitted = 0;
  uint64_t done = 0;
  WorkFiber fiber;                   // of work.front(), which may have paused
  uint64_t awaited_id = 0;           // then, what it waits for: that so much of
  uint64_t awaited_ticket = 0;       // that stream is done; 0: nothing
  std::shared_ptr<Capture> capture;  // null: the stream's work is to run
};

// A kernel whose image the runtime has looked at.
struct LoadedKernel {
  std::string name;
  Kernel kernel;
};

class Gpu {
 public:
  static Gpu& Get();

  // Everything as at the start, but for memory that is still allocated. Faults are forgotten.
  void Reset(uint64_t seed = 1);

  // The call with this number from now on (0: the next) fails with `error` and does nothing.
  void FailCall(int64_t number, cudaError_t error);
  // The next call of this name fails likewise.
  void FailNext(const std::string& call, cudaError_t error);
  // From the call with this number on the device is as it is after a kernel broke a rule.
  void BreakCall(int64_t number) { breaking_call_ = num_calls_ + number; }
  const std::string& failed_call() const { return failed_call_; }  // of the two; empty: none yet
  int64_t num_calls() const { return num_calls_; }
  bool has_work() const;  // on any stream
  // By the function's name, as FailNext takes it.
  const std::map<std::string, int64_t>& calls() const { return calls_; }
  int64_t num_launches() const { return num_launches_; }
  int64_t num_graph_launches() const { return num_graph_launches_; }
  int64_t num_captures() const { return num_captures_; }
  // false: there is no memory for an executable graph.
  void set_graphs(bool graphs) { graphs_ = graphs; }
  uint64_t bytes_to_host() const { return bytes_to_host_; }  // that copies were asked to bring
  // Of the first kernel that broke a rule: every later call fails until Reset.
  const std::string& fault() const { return fault_; }
  void set_peers(bool peers) { peers_ = peers; }             // false: no device can be given access
  void set_num_devices(int count) { num_devices_ = count; }  // at most kMaxDevices
  void set_capability(int major, int minor) { capability_ = {major, minor}; }

  // For the functions of the API.
  std::recursive_mutex& mutex() { return mutex_; }
  // Counts a call; what it has to return at once, or cudaSuccess.
  cudaError_t Enter(const char* call);
  cudaError_t Remember(cudaError_t error);
  cudaError_t TakeLastError();
  static int& current_device();      // of the calling thread
  Queue* Find(cudaStream_t stream);  // null when there is no such stream
  Queue* FindById(uint64_t id);      // likewise
  cudaStream_t AddStream();
  bool RemoveStream(cudaStream_t stream);
  // Into the stream's capture, where there is one. Fails where that is not valid any more.
  cudaError_t Submit(Queue* queue, std::function<void()> work);
  // The capture that the stream is in, if any, ends in an error; `error`.
  cudaError_t Invalidate(Queue* queue, cudaError_t error);
  // Other streams go on meanwhile, or wait, as the seed draws. In a stream's work: lets others run
  // until then.
  void RunUntil(Queue* queue, uint64_t ticket);
  void RunAll();
  void RunDevice(int device);
  // In a stream's work: on the stream's device, while others may run.
  void Run(const GridShape& shape, const std::function<void()>& kernel);
  void Break(std::string fault);  // as a kernel does that breaks a rule
  cudaError_t CheckShape(const void* kernel, const GridShape& shape) const;
  void set_shared_limit(const void* kernel, size_t bytes) { shared_limits_[kernel] = bytes; }
  size_t shared_limit(const void* kernel) const;
  int num_devices() const { return num_devices_; }
  bool peers() const { return peers_; }
  void CountGraphLaunch() { ++num_graph_launches_; }
  void CountCapture() { ++num_captures_; }
  bool graphs() const { return graphs_; }
  uint32_t Random() { return static_cast<uint32_t>(random_()); }
  std::map<const void*, LoadedKernel>& kernels() { return kernels_; }
  const std::pair<int, int>& capability() const { return capability_; }
  void CountToHost(size_t bytes) { bytes_to_host_ += bytes; }
  size_t num_streams() const;  // but the default ones

 private:
  bool IsDone(uint64_t id, uint64_t ticket) const;
  bool CanGoOn(const Queue& queue) const;
  Queue* Needed(Queue* queue);
  Queue* Draw();
  void GoOn(Queue* queue);
  bool InvalidateCaptures(const char* call);

  std::recursive_mutex mutex_;
  uint64_t seed_ = 1;
  int64_t num_calls_ = 0;
  std::map<std::string, int64_t> calls_;
  int64_t num_launches_ = 0;
  int64_t num_graph_launches_ = 0;
  int64_t num_captures_ = 0;
  bool graphs_ = true;
  uint64_t bytes_to_host_ = 0;
  int64_t failing_call_ = -1;
  int64_t breaking_call_ = -1;
  std::string failing_name_;
  std::string failed_call_;
  cudaError_t failure_ = cudaSuccess;
  cudaError_t last_error_ = cudaSuccess;
  std::string fault_;
  int num_devices_ = 1;
  bool peers_ = true;
  std::minstd_rand random_;      // which stream runs next
  uint64_t drawn_id_ = 0;        // that one
  uint32_t num_steps_left_ = 0;  // before the next is drawn
  Queue* running_ = nullptr;     // whose work it is that calls
  uint64_t next_stream_ = kMaxDevices;
  std::map<uint64_t, Queue> queues_;  // the default stream of a device has its number
  std::pair<int, int> capability_ = {8, 0};
  std::map<const void*, size_t> shared_limits_;  // kernel -> bytes that it may ask for
  std::map<const void*, LoadedKernel> kernels_;  // by address
};

}  // namespace llm::cuda_on_cpu
