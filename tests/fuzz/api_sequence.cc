// Manual drive and one thread, so that the bytes alone decide what happens.
#include "tests/fuzz/api_sequence.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "tests/fuzz/api_sequence_run.h"

namespace llm {

namespace {

void OnEvent(void* user_data, const llm_event* event) {
  auto* tracked = static_cast<Tracked*>(user_data);
  tracked->Take(*event);
  tracked->world->InCallback(tracked);
}

}  // namespace

void World::Open(SequenceEngine* slot) {
  slot->host.clock_mode = slot->host.run_mode = 0;
  slot->shut_down = false;
  slot->submitted = slot->refused = 0;
  slot->finished = 0;
  slot->pins.clear();
  llm_engine_options options = Made(llm_engine_options_init);
  const llm_host host = slot->host.Hooks(bytes_.Below(2) != 0, bytes_.Below(2) != 0);
  options.host = &host;
  options.drive = LLM_DRIVE_MANUAL;
  options.kv_dtype = LLM_KV_F16;
  options.num_threads = bytes_.Below(32) == 0 ? 3 : 1;  // waiting for threads is most of the time
  options.kv_tokens = 112 + 16 * bytes_.Below(16);
  options.max_context_tokens = 112;  // what pins leave is for one such request
  options.max_step_tokens = 1 + bytes_.Below(64);
  options.max_sequences = 1 + bytes_.Below(6);
  options.max_queued_requests = 2 + bytes_.Below(30);
  options.max_pending_bytes = bytes_.Below(2) != 0 ? 1 + bytes_.Below(64) : 0;
  options.policy = bytes_.Below(2);
  options.prefix_cache = 1 + (bytes_.Below(4) == 0 ? 1 : 0);
  slot->host.fail_every = bytes_.Below(8) == 0 ? 1 + bytes_.Below(8) : 0;
  const std::string folder = SequenceFolder();
  if (bytes_.Below(3) == 0) options.spill_folder = {folder.data(), folder.size()};
  options.spill_bytes = 1 << 18;
  const llm_status status = llm_engine_open(TheOracle().model(), &options, &slot->engine);
  if (status == LLM_OK) return;
  SEQUENCE_CHECK(slot->engine == nullptr);
  SEQUENCE_CHECK(status == LLM_RESOURCE_EXHAUSTED && slot->host.fail_every != 0);
  SEQUENCE_CHECK(slot->host.bytes == 0);
}

// Every request has its FINISHED by then, unless its queue was closed before it could be read.
void World::Close(SequenceEngine* slot) {
  if (slot->engine == nullptr) return;
  if (slot->host.clock_mode > 4) slot->host.clock_mode = 0;
  SEQUENCE_CHECK(llm_engine_shutdown(slot->engine, -1) == LLM_OK);
  for (llm_queue* queue : queues_) PollAll(queue, slot);
  PollAll(nullptr, slot);
  for (const Tracked& tracked : tracked_) {
    if (tracked.engine == slot && !tracked.refused && !tracked.dropped) {
      SEQUENCE_CHECK(tracked.finished);
    }
  }
  CheckMetrics(slot, true);
  SEQUENCE_CHECK(llm_engine_close(slot->engine) == LLM_OK);
  slot->engine = nullptr;
  SEQUENCE_CHECK(slot->host.bytes == 0);
  for (Tracked& tracked : tracked_) {
    if (tracked.engine == slot) tracked.engine = nullptr;
  }
}

void World::CheckMetrics(SequenceEngine* slot, bool all_ended) {
  llm_metrics_snapshot m = Made(llm_metrics_snapshot_init);
  SEQUENCE_CHECK(llm_metrics(slot->engine, &m) == LLM_OK);
  SEQUENCE_CHECK(m.submitted_requests_total == slot->submitted + slot->waiting);
  SEQUENCE_CHECK(m.rejected_requests_total == slot->refused);
  SEQUENCE_CHECK(m.rejected_requests_total == m.rejected_full_requests_total +
                                                  m.rejected_invalid_requests_total +
                                                  m.rejected_other_requests_total);
  SEQUENCE_CHECK(m.finished_requests_total <= m.submitted_requests_total);
  const uint64_t ended = m.stopped_requests_total + m.length_requests_total +
                         m.cancelled_requests_total + m.deadline_requests_total +
                         m.failed_requests_total;
  SEQUENCE_CHECK(ended <= m.finished_requests_total);
  SEQUENCE_CHECK(m.deadline_requests_total == m.deadline_queue_requests_total +
                                                  m.deadline_prefill_requests_total +
                                                  m.deadline_decode_requests_total);
  SEQUENCE_CHECK(m.free_blocks_current + m.held_blocks_current + m.cached_blocks_current ==
                 m.total_blocks_current);
  SEQUENCE_CHECK(m.pinned_blocks_current <= m.held_blocks_current);
  SEQUENCE_CHECK(slot->host.bytes <= static_cast<int64_t>(m.memory_bytes_current));
  if (!all_ended) return;
  SEQUENCE_CHECK(m.finished_requests_total == m.submitted_requests_total);
  if (m.healthy == 0) return;
  SEQUENCE_CHECK(m.running_current == 0 && m.waiting_current == 0);
  SEQUENCE_CHECK(m.held_blocks_current == m.pinned_blocks_current);
}

void World::Shape(Tracked* tracked, llm_request* request) {
  tracked->prompt = bytes_.Below(kNumPrompts);
  tracked->temperature = bytes_.Below(2) != 0 ? 0.9f : 0.0f;
  tracked->seed = bytes_.Below(3);
  tracked->num_choices = bytes_.Below(3) == 0 ? 1 + bytes_.Below(4) : 1;
  tracked->max_new_tokens = 1 + bytes_.Below(kOracleTokens);
  const uint32_t flags = bytes_.Next();
  tracked->logprobs = (flags & 1) != 0;
  tracked->prompt_logprobs = (flags & 6) == 6;
  request->choices = tracked->num_choices;
  request->max_new_tokens = tracked->max_new_tokens;
  request->temperature = tracked->temperature;
  request->seed = tracked->seed;
  request->set = LLM_SET_SEED;
  if (tracked->logprobs) request->set |= LLM_SET_NUM_LOGPROBS;
  if (tracked->prompt_logprobs) request->set |= LLM_SET_NUM_PROMPT_LOGPROBS;
  request->num_logprobs = tracked->logprobs ? static_cast<int32_t>(bytes_.Below(3)) : 0;
  request->num_prompt_logprobs =
      tracked->prompt_logprobs ? static_cast<int32_t>(bytes_.Below(3)) : 0;
  request->ignore_eos = LLM_ON;
  if ((flags & 8) != 0) request->session_id = 1 + bytes_.Below(3);
  if ((flags & 0x30) == 0x30) request->completion_deadline_ns = 1 + bytes_.Below(255) * 400;
  if ((flags & 0xc0) == 0xc0) request->first_token_deadline_ns = 1 + bytes_.Below(255) * 100;
  request->priority = static_cast<int32_t>(bytes_.Below(3)) - 1;
  request->prefix_cache = bytes_.Below(3);
}

void World::Count(SequenceEngine* slot, llm_status status) {
  ++(status == LLM_OK ? slot->submitted : slot->refused);
}

void World::Submit(SequenceEngine* slot) {
  Tracked& tracked = tracked_.emplace_back();
  llm_request request = Made(llm_request_init);
  Shape(&tracked, &request);
  const std::vector<int32_t> ids = SequencePrompt(tracked.prompt);
  request.prompt_ids = ids.data();
  request.num_prompt_ids = ids.size();
  request.user_data = &tracked;
  tracked.world = this;
  tracked.engine = slot;
  const uint32_t where = bytes_.Below(4);
  if (where < 2) tracked.queue = request.queue = queues_[where];
  if (where == 2) request.on_event = OnEvent;
  tracked.behaviour = where == 2 ? bytes_.Below(24) : 0;
  llm_request_id id = 0;
  const llm_status status = llm_submit(slot->engine, &request, &id);
  tracked.id = id;
  tracked.refused = status != LLM_OK;
  SEQUENCE_CHECK((status == LLM_OK) == (id != 0));
  Count(slot, status);
}

// Scalars of any value, and one that is wrong: a refusal.
void World::Refuse(SequenceEngine* slot) {
  llm_request request = Made(llm_request_init);
  const int32_t ids[] = {3, 4, static_cast<int32_t>(bytes_.Word())};
  request.prompt_ids = ids;
  request.num_prompt_ids = 1 + bytes_.Below(3);
  request.struct_size = bytes_.Below(3) == 0 ? static_cast<uint32_t>(bytes_.Word())
                                             : request.struct_size - 8 * bytes_.Below(4);
  if (request.struct_size > sizeof(request)) request.struct_size = bytes_.Below(4);
  request.choices = static_cast<uint32_t>(bytes_.Word());
  request.max_new_tokens = static_cast<uint32_t>(bytes_.Word());
  request.set = bytes_.Word();
  const uint64_t word = bytes_.Word();
  std::memcpy(&request.temperature, &word, sizeof(float));
  request.top_k = -1 - static_cast<int32_t>(bytes_.Word() >> 40);  // never taken in
  request.literal_content = bytes_.Below(4);
  request.completion_deadline_ns = static_cast<int64_t>(bytes_.Word());
  request.num_prompt_logprobs = static_cast<int32_t>(bytes_.Next()) - 100;
  request.queue = queues_[0];
  Tracked& tracked = tracked_.emplace_back();
  tracked.refused = true;
  request.user_data = &tracked;
  llm_request_id id = 0;
  const llm_status status = llm_submit(slot->engine, &request, &id);
  SEQUENCE_CHECK(status != LLM_OK);
  Count(slot, status);
}

void World::Step(SequenceEngine* slot) {
  for (uint32_t left = 1 + bytes_.Below(8); left > 0; --left) {
    const llm_status status = llm_engine_step(slot->engine, nullptr);
    SEQUENCE_CHECK(status == LLM_OK || status == LLM_FAILED_PRECONDITION || status == LLM_INTERNAL);
    slot->shut_down |= status == LLM_INTERNAL;
  }
}

void World::Poll(llm_queue* queue, size_t capacity, SequenceEngine* slot) {
  if (queue == nullptr) queue = llm_engine_queue(slot->engine);
  std::array<llm_event, 8> events;
  size_t count = 0;
  SEQUENCE_CHECK(llm_poll(queue, events.data(), sizeof(llm_event), capacity, 0, &count) == LLM_OK);
  for (size_t i = 0; i < count; ++i) static_cast<Tracked*>(events[i].user_data)->Take(events[i]);
}

void World::PollAll(llm_queue* queue, SequenceEngine* slot) {
  for (int i = 0; i < 64; ++i) Poll(queue, 8, slot);
}

void World::CloseQueue(size_t index) {
  SEQUENCE_CHECK(llm_queue_close(queues_[index]) == LLM_OK);
  for (Tracked& tracked : tracked_) {
    if (tracked.queue == queues_[index]) tracked.dropped = true;
  }
  SEQUENCE_CHECK(llm_queue_create(&queues_[index]) == LLM_OK);
}

void World::Read(SequenceEngine* slot) {
  uint64_t cursor = bytes_.Below(4) == 0 ? bytes_.Word() : 0;
  std::vector<llm_step_record> steps(1 + bytes_.Below(64));
  std::vector<llm_request_record> records(steps.size());
  size_t count = 0;
  SEQUENCE_CHECK(llm_step_records_read(slot->engine, &cursor, steps.data(), sizeof(steps[0]),
                                       steps.size(), &count) == LLM_OK);
  for (size_t i = 0; i < count; ++i) SEQUENCE_CHECK(steps[i].begin_ns <= steps[i].end_ns);
  cursor = 0;
  SEQUENCE_CHECK(llm_request_records_read(slot->engine, &cursor, records.data(), sizeof(records[0]),
                                          records.size(), &count) == LLM_OK);
  llm_histogram histogram = Made(llm_histogram_init);
  (void)llm_metrics_histogram(slot->engine, bytes_.Below(16), &histogram);
  std::array<char, 512> text;
  SEQUENCE_CHECK(llm_metrics_text(slot->engine, text.data(), text.size(), &count) == LLM_OK);
  CheckMetrics(slot, false);
}

void World::ActOnHost(SequenceEngine* slot) {
  const uint32_t what = bytes_.Next();
  if (what < 64) slot->host.clock_mode = what % 5;
  if (what == 64) slot->host.clock_mode = 5;
  if (what == 65) slot->host.run_mode = 1 + bytes_.Below(3);
  if (what > 200) slot->host.fail_every = bytes_.Below(4);
}

void World::Act(SequenceEngine* slot) {
  const uint32_t what = bytes_.Below(36);
  if (slot->engine == nullptr) return depth_ == 0 ? Open(slot) : void();
  if (slot->shut_down && depth_ == 0 && bytes_.Below(4) == 0) return Close(slot);
  if (what < 8) return Submit(slot);
  if (what < 15) return Step(slot);
  if (what < 18) return Poll(what == 17 ? nullptr : queues_[what - 15], 1 + bytes_.Below(8), slot);
  if (what < 21) return Wait(slot, static_cast<Call>(what - 18));
  if (what == 32) return Wait(slot, Call::kSave);
  if (what == 33 || what == 34) return Wait(slot, Call::kLoad);
  if (what == 35) return Damage();
  if (what == 21) (void)llm_cancel(slot->engine, 1 + bytes_.Below(64));
  if (what == 22) (void)llm_cancel(slot->engine, tracked_.empty() ? 0 : tracked_.back().id.load());
  if (what == 23 && !slot->pins.empty()) {
    const llm_status status = llm_prefix_unpin(slot->engine, slot->pins.back());
    if (!slot->shut_down) SEQUENCE_CHECK(status == LLM_OK || status == LLM_INTERNAL);
    slot->pins.pop_back();
  }
  if (what == 24) (void)llm_session_hint(slot->engine, bytes_.Below(4), bytes_.Below(4));
  if (what == 25) (void)llm_session_close(slot->engine, bytes_.Below(4));
  if (what == 26) (void)llm_cache_flush(slot->engine);
  if (what == 27) Read(slot);
  if (what == 28) Refuse(slot);
  if (what == 29) ActOnHost(slot);
  if (what == 30 && depth_ == 0) CloseQueue(bytes_.Below(2));
  if (what != 31) return;
  const uint32_t rare = bytes_.Below(8);
  if (rare == 0) {
    slot->shut_down = true;
    (void)llm_engine_shutdown(slot->engine, static_cast<int64_t>(bytes_.Below(2)) - 1);
  }
  if (rare == 1 && depth_ == 0) return Close(slot);
  if (rare == 2) (void)llm_trace_start(slot->engine, "/dev/null", 9);
  if (rare == 3) (void)llm_trace_stop(slot->engine);
}

// Some callbacks do as they please with their own engine, where nothing of it may be closed.
void World::InCallback(Tracked* tracked) {
  if (tracked->behaviour >= 20) throw std::runtime_error("callback");
  if (tracked->behaviour >= 16) {
    SEQUENCE_CHECK(llm_engine_close(tracked->engine->engine) == LLM_FAILED_PRECONDITION);
    SEQUENCE_CHECK(llm_engine_step(tracked->engine->engine, nullptr) == LLM_FAILED_PRECONDITION);
  }
  if (tracked->behaviour < 8 || depth_ > 0) return;
  ++depth_;
  Act(&engines_[bytes_.Below(2)]);
  --depth_;
}

void World::Run() {
  for (llm_queue*& queue : queues_) SEQUENCE_CHECK(llm_queue_create(&queue) == LLM_OK);
  Open(&engines_[0]);
  while (!bytes_.empty()) Act(&engines_[bytes_.Below(4) == 0 ? 1 : 0]);
  for (SequenceEngine& slot : engines_) Close(&slot);
  for (llm_queue* queue : queues_) SEQUENCE_CHECK(llm_queue_close(queue) == LLM_OK);
  unlink(SequencePath().c_str());
}

void RunApiSequence(const uint8_t* data, size_t size) {
  auto world = std::make_unique<World>(data, size);
  world->Run();
}

}  // namespace llm
