// Where a kernel runs: on the CPU a thread pool, on a GPU a CUDA stream.
#pragma once

namespace llm {

class ThreadPool;

struct Stream {
  ThreadPool* pool = nullptr;  // CPU; borrowed
};

}  // namespace llm
