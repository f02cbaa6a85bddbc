// Where a kernel runs: on the CPU a thread pool, on a device a stream of its own.
#pragma once

namespace llm {

class DeviceStream;
class ThreadPool;

struct Stream {
  ThreadPool* pool = nullptr;      // CPU; borrowed
  DeviceStream* device = nullptr;  // null: host memory; borrowed
};

}  // namespace llm
