// Random calls from many threads at once on engines with threads of their own, which end by a
// shutdown in the middle. INLAY_API_ROUNDS says how many rounds, from seed INLAY_API_SEED on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/fuzz/api_sequence_world.h"

namespace llm {
namespace {

using Random = std::mt19937_64;

template <typename T>
T Made(void (*init)(T*)) {
  T value;
  init(&value);
  return value;
}

class Storm {
 public:
  explicit Storm(uint64_t seed) : seed_(seed) { Open(); }
  void Run();

 private:
  static constexpr int kSubmitters = 3;
  static constexpr int kRequests = 12;  // of each

  void Open();
  void Submit(Random* random);
  void Poll(int which, Random* random);
  void Wait(Random* random);
  void Meddle(Random* random);
  void CheckEnd();
  static void OnEvent(void* user_data, const llm_event* event);

  const uint64_t seed_;
  SequenceEngine slot_;
  std::array<llm_queue*, 2> queues_{};
  std::mutex mutex_;  // of the next
  std::deque<Tracked> tracked_;
  std::atomic<int> num_submitting_{kSubmitters};
  std::atomic<uint64_t> open_{0};  // taken in by Submit
  std::atomic<bool> ended_{false};
};

void Storm::Open() {
  Random random(seed_);
  for (llm_queue*& queue : queues_) SEQUENCE_CHECK(llm_queue_create(&queue) == LLM_OK);
  llm_engine_options options = Made(llm_engine_options_init);
  const llm_host host = slot_.host.Hooks(random() % 2 != 0, false);
  options.host = &host;
  options.num_threads = 1 + static_cast<uint32_t>(random() % 2);
  options.kv_tokens = 112 + 16 * (random() % 16);
  options.max_context_tokens = 112;
  options.max_step_tokens = 1 + static_cast<uint32_t>(random() % 64);
  options.max_sequences = 1 + static_cast<uint32_t>(random() % 6);
  options.max_pending_bytes = random() % 2 != 0 ? 1 + random() % 64 : 0;
  const std::string folder = testing::TempDir();
  if (random() % 2 != 0) options.spill_folder = {folder.data(), folder.size()};
  options.spill_bytes = 1 << 18;
  SEQUENCE_CHECK(llm_engine_open(TheOracle().model(), &options, &slot_.engine) == LLM_OK);
}

// Now and then a callback throws, cancels, asks for a pin, or asks what it must not.
void Storm::OnEvent(void* user_data, const llm_event* event) {
  auto* tracked = static_cast<Tracked*>(user_data);
  tracked->Take(*event);
  llm_engine* engine = tracked->engine->engine;
  const std::vector<int32_t> ids = SequencePrompt(tracked->prompt);
  if (tracked->behaviour == 0) throw std::runtime_error("callback");
  if (tracked->behaviour == 1) (void)llm_cancel(engine, event->id);
  if (tracked->behaviour == 2) SEQUENCE_CHECK(llm_engine_close(engine) == LLM_FAILED_PRECONDITION);
  if (tracked->behaviour == 3) {
    llm_prefix prefix = Made(llm_prefix_init);
    prefix.prompt_ids = ids.data();
    prefix.num_prompt_ids = ids.size();
    llm_pin_id pin = 0;
    if (llm_prefix_pin(engine, &prefix, &pin) == LLM_OK) (void)llm_prefix_unpin(engine, pin);
  }
}

void Storm::Submit(Random* random) {
  Tracked* tracked = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tracked = &tracked_.emplace_back();
  }
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>((*random)() % limit); };
  tracked->engine = &slot_;
  tracked->prompt = below(kNumPrompts);
  tracked->temperature = below(2) != 0 ? 0.9f : 0.0f;
  tracked->seed = below(3);
  tracked->num_choices = below(3) == 0 ? 1 + below(4) : 1;
  tracked->max_new_tokens = 1 + below(kOracleTokens);
  tracked->logprobs = below(2) != 0;
  tracked->prompt_logprobs = below(3) == 0;
  tracked->behaviour = below(20);
  llm_request request = Made(llm_request_init);
  const std::vector<int32_t> ids = SequencePrompt(tracked->prompt);
  request.prompt_ids = ids.data();
  request.num_prompt_ids = ids.size();
  request.choices = tracked->num_choices;
  request.max_new_tokens = tracked->max_new_tokens;
  request.temperature = tracked->temperature;
  request.seed = tracked->seed;
  request.set = LLM_SET_SEED;
  if (tracked->logprobs) request.set |= LLM_SET_NUM_LOGPROBS;
  if (tracked->prompt_logprobs) request.set |= LLM_SET_NUM_PROMPT_LOGPROBS;
  request.ignore_eos = LLM_ON;
  request.session_id = below(3);
  if (below(8) == 0) request.completion_deadline_ns = 1 + below(3'000'000);
  request.user_data = tracked;
  if (const uint32_t where = below(3); where < 2) {
    request.queue = queues_[where];
  } else {
    request.on_event = OnEvent;
  }
  llm_request_id id = 0;
  const llm_status status = llm_submit(slot_.engine, &request, &id);
  SEQUENCE_CHECK((status == LLM_OK) == (id != 0));
  if (status != LLM_OK) {
    tracked->refused = true;
    return;
  }
  tracked->id = id;
  ++open_;
}

void Storm::Poll(int which, Random* random) {
  while (true) {
    const bool last = ended_.load();
    std::array<llm_event, 8> events;
    size_t count = 0;
    SEQUENCE_CHECK(llm_poll(queues_[which], events.data(), sizeof(llm_event), 1 + (*random)() % 8,
                            last ? 0 : 1'000'000, &count) == LLM_OK);
    for (size_t i = 0; i < count; ++i) static_cast<Tracked*>(events[i].user_data)->Take(events[i]);
    if (last && count == 0) return;
  }
}

void Storm::Wait(Random* random) {
  const std::vector<int32_t> ids = SequencePrompt(static_cast<uint32_t>((*random)() % kNumPrompts));
  std::array<float, 64> values{};
  size_t count = 0;
  llm_score_request score = Made(llm_score_request_init);
  llm_embed_request embed = Made(llm_embed_request_init);
  llm_prefix prefix = Made(llm_prefix_init);
  score.ids = embed.ids = prefix.prompt_ids = ids.data();
  score.num_ids = embed.num_ids = prefix.num_prompt_ids = ids.size();
  llm_pin_id pin = 0;
  (void)llm_score(slot_.engine, &score, values.data(), values.size(), &count);
  (void)llm_embed(slot_.engine, &embed, values.data(), values.size(), &count);
  if (llm_prefix_pin(slot_.engine, &prefix, &pin) == LLM_OK && (*random)() % 2 != 0) {
    (void)llm_prefix_unpin(slot_.engine, pin);
  }
  const std::string path = testing::TempDir() + "inlay-storm-" + std::to_string(getpid());
  if (llm_prefix_save(slot_.engine, &prefix, path.data(), path.size()) == LLM_OK) {
    (void)llm_prefix_load(slot_.engine, path.data(), path.size(), nullptr, &count, nullptr);
  }
  unlink(path.c_str());
}

void Storm::Meddle(Random* random) {
  llm_metrics_snapshot m = Made(llm_metrics_snapshot_init);
  SEQUENCE_CHECK(llm_metrics(slot_.engine, &m) == LLM_OK);
  SEQUENCE_CHECK(m.finished_requests_total <= m.submitted_requests_total);
  SEQUENCE_CHECK(m.free_blocks_current + m.held_blocks_current + m.cached_blocks_current ==
                 m.total_blocks_current);
  uint64_t cursor = 0;
  size_t count = 0;
  std::array<llm_request_record, 8> records;
  SEQUENCE_CHECK(llm_request_records_read(slot_.engine, &cursor, records.data(), sizeof(records[0]),
                                          records.size(), &count) == LLM_OK);
  const uint64_t what = (*random)() % 6;
  if (what == 0) (void)llm_cancel(slot_.engine, 1 + (*random)() % 60);
  if (what == 1) (void)llm_session_hint(slot_.engine, 1 + (*random)() % 3, 1);
  if (what == 2) (void)llm_session_close(slot_.engine, 1 + (*random)() % 3);
  if (what == 3) (void)llm_cache_flush(slot_.engine);
  if (what == 4) (void)llm_trace_start(slot_.engine, "/dev/null", 9);
  if (what == 5) (void)llm_trace_stop(slot_.engine);
}

void Storm::CheckEnd() {
  for (const Tracked& tracked : tracked_) SEQUENCE_CHECK(tracked.refused || tracked.finished);
  SEQUENCE_CHECK(slot_.finished == open_);
  llm_metrics_snapshot m = Made(llm_metrics_snapshot_init);
  SEQUENCE_CHECK(llm_metrics(slot_.engine, &m) == LLM_OK);
  SEQUENCE_CHECK(m.healthy == 1 && m.finished_requests_total == m.submitted_requests_total);
  SEQUENCE_CHECK(m.running_current == 0 && m.waiting_current == 0);
  SEQUENCE_CHECK(m.held_blocks_current == m.pinned_blocks_current);
  SEQUENCE_CHECK(llm_engine_close(slot_.engine) == LLM_OK);
  SEQUENCE_CHECK(slot_.host.bytes == 0);
  for (llm_queue* queue : queues_) SEQUENCE_CHECK(llm_queue_close(queue) == LLM_OK);
}

void Storm::Run() {
  std::vector<std::thread> threads;
  std::vector<std::thread> pollers;
  for (int i = 0; i < kSubmitters; ++i) {
    threads.emplace_back([this, i] {
      Random random(seed_ * 100 + static_cast<uint64_t>(i));
      for (int k = 0; k < kRequests; ++k) Submit(&random);
      --num_submitting_;
    });
  }
  for (int i = 0; i < 2; ++i) {
    pollers.emplace_back([this, i] {
      Random random(seed_ * 100 + 10 + static_cast<uint64_t>(i));
      Poll(i, &random);
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this, i] {
      Random random(seed_ * 100 + 20 + static_cast<uint64_t>(i));
      for (int k = 0; k < 6 || num_submitting_ > 0; ++k) i == 0 ? Wait(&random) : Meddle(&random);
    });
  }
  // In half of the rounds the shutdown comes while all others are at it.
  const bool early = seed_ % 2 != 0;
  if (!early) {
    for (std::thread& thread : threads) thread.join();
  } else {
    while (open_ < kRequests) std::this_thread::yield();
  }
  while (llm_engine_shutdown(slot_.engine, 100'000) == LLM_DEADLINE_EXCEEDED) continue;
  if (early) {
    for (std::thread& thread : threads) thread.join();
  }
  ended_ = true;
  for (std::thread& poller : pollers) poller.join();
  CheckEnd();
}

uint64_t FromEnv(const char* name, uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

TEST(AbiSequenceThreadsTest, NoMixOfCallsFromManyThreadsBreaksAPromise) {
  const uint64_t first = FromEnv("INLAY_API_SEED", 1);
  const uint64_t count = FromEnv("INLAY_API_ROUNDS", 20);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::fprintf(stderr, "seed %llu\r", static_cast<unsigned long long>(seed));
    Storm(seed).Run();
  }
}

}  // namespace
}  // namespace llm
