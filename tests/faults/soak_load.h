// The load of the soak: requests of every kind from several threads, and the ledger that says
// whether each was answered once.
#pragma once

#include <inlay/llm.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/faults/tiny_host.h"

namespace llm {

// One request on its way; the events' user_data.
struct Ticket {
  class Ledger* ledger = nullptr;
  std::atomic<bool> open{false};
  bool golden = false;  // its answer is known
  int throw_at = 0;     // this event's callback throws; 0: none
  int num_events = 0;
  size_t num_ids = 0;
  std::array<int32_t, kTinyTokens> ids = {};
};

// Fixed in size, so that what grows is the library's. Tickets come back in turn: a second FINISHED
// meets one that is not open.
class Ledger {
 public:
  Ledger();
  // nullptr: too many are open.
  Ticket* Take();
  // For a request that was refused.
  void GiveBack(Ticket* ticket) { ticket->open.store(false); }
  void Accept(llm_request_id id);
  // Any reader or callback, for its ticket's events.
  void See(const llm_event& event);
  void Error(const std::string& what);
  llm_request_id Recent(uint64_t random) const { return recent_[random % recent_.size()].load(); }
  uint64_t num_open() const;

  std::array<int32_t, kTinyTokens> expected = {};
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> finished{0};
  std::atomic<uint64_t> cancelled{0};
  std::atomic<uint64_t> missed{0};  // deadlines
  std::atomic<uint64_t> failed{0};  // callbacks that threw
  std::atomic<uint64_t> calls{0};   // scores, embeddings and pins that the engine took
  std::atomic<uint64_t> errors{0};

 private:
  void Finish(Ticket* ticket, const llm_event& event);

  std::array<Ticket, 4096> tickets_;
  std::atomic<uint64_t> next_{0};
  std::array<std::atomic<llm_request_id>, 256> recent_ = {};
};

// Threads that load an engine until Stop.
class SoakLoad {
 public:
  SoakLoad(llm_model* model, llm_engine* engine, Ledger* ledger);
  // Stops the submitters, waits for every FINISHED, then stops the readers.
  void Stop();

 private:
  using Random = std::mt19937_64;
  void Submit(Random* random);
  void Read(llm_queue* queue, uint64_t seed);
  void CallOthers(Random* random);
  void CallAndWait(Random* random);
  void Churn(Random* random);
  void Start(void (SoakLoad::*work)(Random*), uint64_t seed);

  llm_model* const model_;
  llm_engine* const engine_;
  Ledger* const ledger_;
  std::array<llm_queue*, 3> queues_ = {};  // the engine's own first
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_reading_{false};
  std::vector<std::thread> workers_;
  std::vector<std::thread> readers_;
};

}  // namespace llm
