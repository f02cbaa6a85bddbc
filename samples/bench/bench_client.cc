// The C ABI as a program uses it: open, submit, poll, cancel.
#include "bench_client.h"

#include <algorithm>

namespace bench {

llm_engine_options EngineOptions(const Flags& flags, const Capacity& capacity) {
  llm_engine_options options = tools::EngineOptions(flags.open);
  options.drive = flags.manual_drive ? LLM_DRIVE_MANUAL : LLM_DRIVE_THREADS;
  options.max_sequences = capacity.sequences;
  // Room for every sequence to its end, with the partly filled last block of each, so that none is
  // preempted; 256 tokens more, since the engine may keep a few blocks to itself.
  const uint64_t spare_tokens = 2 * std::max(flags.open.block_size, 16u);
  options.kv_tokens = capacity.sequences * (capacity.tokens_per_sequence + spare_tokens) +
                      capacity.extra_tokens + 256;
  return options;
}

Client::Client(const Flags& flags, const Capacity& capacity)
    : manual_drive_(flags.manual_drive), random_state_(flags.seed) {
  OpenModel(flags);
  OpenEngine(flags, capacity);
}

void Client::OpenModel(const Flags& flags) {
  const Clock::time_point begin = Clock::now();
  model_ = tools::OpenModel(flags.open);
  model_open_s_ = Seconds(Clock::now() - begin);
  info_ = tools::ModelInfo(model_);
}

void Client::OpenEngine(const Flags& flags, const Capacity& capacity) {
  const llm_engine_options options = EngineOptions(flags, capacity);
  const Clock::time_point begin = Clock::now();
  Check(inlay::Engine::Open(model_, &options, &engine_));
  engine_open_s_ = Seconds(Clock::now() - begin);
}

uint64_t Client::NextRandom() {  // SplitMix64 (Steele, Lea, Flood 2014)
  uint64_t z = (random_state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

bool Client::IsOrdinary(int32_t id) const {
  size_t size = 0;
  return llm_detokenize(model_.get(), &id, 1, 0, nullptr, 0, &size) == LLM_OK && size > 0;
}

std::vector<int32_t> Client::RandomPrompt(unsigned num_tokens) {
  std::vector<int32_t> ids;
  const uint64_t vocab_size = static_cast<uint64_t>(info_.vocab_size);
  // A vocabulary is mostly ordinary tokens; the bound is for one that is not.
  for (uint64_t tries = 0; ids.size() < num_tokens; ++tries) {
    if (tries > 100 * (vocab_size + num_tokens)) Fail("the vocabulary has no ordinary tokens");
    const int32_t id = static_cast<int32_t>(NextRandom() % vocab_size);
    if (IsOrdinary(id)) ids.push_back(id);
  }
  return ids;
}

void Client::Submit(const std::vector<int32_t>& prompt, uint32_t max_new_tokens, Stream* stream) {
  llm_request request;
  llm_request_init(&request);
  request.prompt_ids = prompt.data();
  request.num_prompt_ids = prompt.size();
  request.max_new_tokens = max_new_tokens;
  request.ignore_eos = LLM_ON;
  request.prefix_cache = LLM_OFF;
  request.user_data = stream;
  stream->arrivals.reserve(max_new_tokens);
  stream->submitted = Clock::now();
  Check(llm_submit(engine_.get(), &request, &stream->id));
}

void Client::Poll() {
  llm_event events[64];
  size_t count = 0;
  if (manual_drive_) Check(llm_engine_step(engine_.get(), nullptr));
  const int64_t timeout_ns = manual_drive_ ? 0 : -1;
  Check(llm_poll(engine_.queue(), events, sizeof events[0], 64, timeout_ns, &count));
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    Stream* stream = static_cast<Stream*>(events[i].user_data);
    stream->arrivals.insert(stream->arrivals.end(), events[i].num_tokens, now);
    if (events[i].type != LLM_EVENT_FINISHED) continue;
    stream->finished = true;
    stream->finish_reason = events[i].finish_reason;
    stream->stats = *events[i].stats;
    if (events[i].status != LLM_OK && events[i].status != LLM_CANCELLED)
      Fail("a request ended with " + std::string(llm_status_name(events[i].status)) + ": " +
           std::string(events[i].message.data, events[i].message.size));
  }
}

void Client::Drain(std::vector<Stream*> streams) {
  for (const Stream* stream : streams)
    if (!stream->finished) llm_cancel(engine_.get(), stream->id);  // it may have just finished
  for (const Stream* stream : streams)
    while (!stream->finished) Poll();
}

llm_metrics_snapshot Client::Metrics() const {
  llm_metrics_snapshot metrics;
  Check(engine_.GetMetrics(&metrics));
  return metrics;
}

}  // namespace bench
