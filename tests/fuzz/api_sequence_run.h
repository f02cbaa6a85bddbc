// An API sequence while it runs.
#pragma once

#include <inlay/llm.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <string>

#include "tests/fuzz/api_sequence_world.h"

namespace llm {

template <typename T>
T Made(void (*init)(T*)) {
  T value;
  init(&value);
  return value;
}

inline std::string SequenceFolder() {
  const char* folder = std::getenv("TMPDIR");
  return folder == nullptr ? "/tmp" : folder;
}
// Of the saved prefix.
inline std::string SequencePath() {
  return SequenceFolder() + "/inlay-sequence-" + std::to_string(getpid());
}

class World {
 public:
  World(const uint8_t* data, size_t size) : bytes_(data, size) {}
  void Run();
  void InCallback(Tracked* tracked);

 private:
  void Open(SequenceEngine* slot);
  void Close(SequenceEngine* slot);
  void Act(SequenceEngine* slot);
  void ActOnHost(SequenceEngine* slot);
  void Submit(SequenceEngine* slot);
  void Refuse(SequenceEngine* slot);
  void Shape(Tracked* tracked, llm_request* request);
  void Count(SequenceEngine* slot, llm_status status);
  // api_sequence_waits.cc: the calls that wait
  enum class Call { kScore, kEmbed, kPin, kSave, kLoad };
  void Wait(SequenceEngine* slot, Call call);
  llm_status Score(SequenceEngine* slot);
  llm_status Embed(SequenceEngine* slot);
  llm_status Pin(SequenceEngine* slot);
  llm_status Save(SequenceEngine* slot);
  llm_status Load(SequenceEngine* slot);
  void Damage();
  void Step(SequenceEngine* slot);
  void Poll(llm_queue* queue, size_t capacity, SequenceEngine* slot);
  void PollAll(llm_queue* queue, SequenceEngine* slot);
  void CloseQueue(size_t index);
  void Read(SequenceEngine* slot);
  void CheckMetrics(SequenceEngine* slot, bool all_ended);

  Bytes bytes_;
  std::array<SequenceEngine, 2> engines_;
  std::array<llm_queue*, 2> queues_{};
  std::deque<Tracked> tracked_;
  int depth_ = 0;         // of callbacks
  bool damaged_ = false;  // the saved prefix
};

}  // namespace llm
