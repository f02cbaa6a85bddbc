// The workloads. Streams that must all be decoding at once are asked for more tokens than are
// measured and cancelled at the end, so that none runs dry inside the window.
#include "workloads.h"

#include <algorithm>
#include <vector>

namespace bench {
namespace {

// What a stream alone may get beyond the window: a late poll takes several tokens at once, and at
// least one has to come after it.
constexpr uint64_t kSpareTokens = 16;

constexpr char kEarlyEnd[] =
    "a stream ended before its window did: its tokens came faster than they were polled; measure "
    "more of them (--tokens)";

// Tokens that the first stream may get before the last one has its first: one a step, and a step
// computes at least 32 prompt tokens beside the decodes.
uint64_t LeadTokens(const Flags& flags) {
  return uint64_t{flags.streams} * flags.prompt_tokens / 32 + 64;
}

// Likewise while the late prompt is computed; its first steps may be smaller.
uint64_t ArrivalTokens(const Flags& flags) { return flags.arrival_tokens / 4 + 64; }

void FillGaps(const std::vector<Stream>& streams, Clock::time_point begin, Clock::time_point end,
              Result* result) {
  std::vector<double> gaps;
  for (const Stream& stream : streams) {
    for (size_t i = 1; i < stream.arrivals.size(); ++i) {
      if (stream.arrivals[i] <= begin || stream.arrivals[i - 1] >= end) continue;
      gaps.push_back(Seconds(stream.arrivals[i] - stream.arrivals[i - 1]));
    }
  }
  if (gaps.empty()) Fail("no stream got a token in the window");
  std::sort(gaps.begin(), gaps.end());
  result->median_gap_s = gaps[gaps.size() / 2];
  result->p99_gap_s = gaps[(gaps.size() - 1) * 99 / 100];
  result->worst_gap_s = gaps.back();
}

size_t TokensUntil(const std::vector<Stream>& streams, Clock::time_point time) {
  size_t tokens = 0;
  for (const Stream& stream : streams)
    tokens +=
        static_cast<size_t>(std::upper_bound(stream.arrivals.begin(), stream.arrivals.end(), time) -
                            stream.arrivals.begin());
  return tokens;
}

Clock::time_point LastFirstToken(const std::vector<Stream>& streams) {
  Clock::time_point last = streams[0].arrivals.at(0);
  for (const Stream& stream : streams) last = std::max(last, stream.arrivals.at(0));
  return last;
}

void PollUntilEachHas(size_t num_tokens, std::vector<Stream>* streams, Client* client) {
  for (const Stream& stream : *streams) {
    while (stream.arrivals.size() < num_tokens) {
      if (stream.finished) Fail(kEarlyEnd);
      client->Poll();
    }
  }
}

// Counts the engine's work from here to Add.
class Work {
 public:
  explicit Work(const Client* client) : client_(client), before_(client->Metrics()) {}
  void Add(Result* result) const {
    const llm_metrics_snapshot now = client_->Metrics();
    result->steps = now.steps_total - before_.steps_total;
    result->bytes_read = now.weight_bytes_read_total - before_.weight_bytes_read_total +
                         now.kv_bytes_read_total - before_.kv_bytes_read_total;
  }

 private:
  const Client* const client_;
  const llm_metrics_snapshot before_;
};

std::vector<Stream*> Pointers(std::vector<Stream>* streams) {
  std::vector<Stream*> pointers;
  for (Stream& stream : *streams) pointers.push_back(&stream);
  return pointers;
}

void SubmitStreams(const Flags& flags, uint64_t max_new_tokens, Client* client,
                   std::vector<Stream>* streams) {
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < streams->size(); ++i)
    prompts.push_back(client->RandomPrompt(flags.prompt_tokens));
  for (size_t i = 0; i < streams->size(); ++i)
    client->Submit(prompts[i], static_cast<uint32_t>(max_new_tokens), &(*streams)[i]);
}

Result RunPrefill(const Flags& flags, Client* client) {
  Stream stream;
  const Work work(client);
  client->Submit(client->RandomPrompt(flags.prompt_tokens), 1, &stream);
  while (!stream.finished) client->Poll();
  Result result;
  work.Add(&result);
  result.tokens = flags.prompt_tokens;
  result.seconds = Seconds(stream.arrivals.at(0) - stream.submitted);
  result.ttft_s = result.total_s = result.seconds;
  return result;
}

// One stream or many: from the moment when all have their first token until each has got `tokens`
// more on average.
Result RunStreams(const Flags& flags, uint64_t lead_tokens, Client* client) {
  std::vector<Stream> streams(flags.streams);
  SubmitStreams(flags, flags.tokens + lead_tokens, client, &streams);
  PollUntilEachHas(1, &streams, client);
  const Work work(client);
  const Clock::time_point begin = LastFirstToken(streams);
  const size_t tokens_before = TokensUntil(streams, begin);
  const size_t wanted = tokens_before + (flags.tokens - 1) * streams.size();
  for (Clock::time_point end = Clock::now(); TokensUntil(streams, end) < wanted;
       end = Clock::now()) {
    for (const Stream& stream : streams) {
      if (stream.finished) Fail(kEarlyEnd);
    }
    client->Poll();
  }
  Result result;
  work.Add(&result);
  Clock::time_point last = begin;
  for (const Stream& stream : streams) last = std::max(last, stream.arrivals.back());
  result.tokens = TokensUntil(streams, last) - tokens_before;
  result.seconds = Seconds(last - begin);
  result.ttft_s = Seconds(begin - streams[0].submitted);
  result.total_s = Seconds(last - streams[0].submitted);
  FillGaps(streams, begin, last, &result);
  client->Drain(Pointers(&streams));
  return result;
}

// A long prompt arrives among decoding streams: the window is its submit to its first token.
Result RunArrival(const Flags& flags, Client* client) {
  std::vector<Stream> streams(flags.streams);
  const std::vector<int32_t> late_prompt = client->RandomPrompt(flags.arrival_tokens);
  SubmitStreams(flags, flags.tokens + LeadTokens(flags) + ArrivalTokens(flags), client, &streams);
  PollUntilEachHas(flags.tokens / 2, &streams, client);
  Stream late;
  const Work work(client);
  client->Submit(late_prompt, 2, &late);
  while (late.arrivals.empty()) client->Poll();
  const Clock::time_point begin = late.submitted, end = late.arrivals[0];
  Result result;
  work.Add(&result);
  // One more of each: the step that gave the first token may still delay them.
  std::vector<size_t> counts;
  for (const Stream& stream : streams) counts.push_back(stream.arrivals.size());
  for (size_t i = 0; i < streams.size(); ++i)
    while (streams[i].arrivals.size() == counts[i] && !streams[i].finished) client->Poll();
  result.tokens = TokensUntil(streams, end) - TokensUntil(streams, begin);
  result.seconds = result.ttft_s = Seconds(end - begin);
  result.total_s = Seconds(Clock::now() - streams[0].submitted);
  FillGaps(streams, begin, end, &result);
  std::vector<Stream*> open = Pointers(&streams);
  open.push_back(&late);
  client->Drain(open);
  return result;
}

}  // namespace

Capacity CapacityFor(const Flags& flags) {
  Capacity capacity;
  if (flags.workload == "prefill") {
    capacity.tokens_per_sequence = flags.prompt_tokens + 1;
  } else if (flags.workload == "decode") {
    capacity.tokens_per_sequence = uint64_t{flags.prompt_tokens} + flags.tokens + kSpareTokens;
  } else {
    capacity.sequences = flags.streams;
    capacity.tokens_per_sequence = uint64_t{flags.prompt_tokens} + flags.tokens + LeadTokens(flags);
  }
  if (flags.workload == "arrival") {
    capacity.sequences = flags.streams + 1;
    capacity.tokens_per_sequence += ArrivalTokens(flags);
    capacity.extra_tokens = flags.arrival_tokens;
  }
  return capacity;
}

Result RunWorkload(const Flags& flags, Client* client) {
  if (flags.workload == "prefill") return RunPrefill(flags, client);
  if (flags.workload == "arrival") return RunArrival(flags, client);
  const bool staggered = flags.workload == "streams";
  return RunStreams(flags, staggered ? LeadTokens(flags) : kSpareTokens, client);
}

void WarmUp(Client* client) {
  Stream stream;
  client->Submit(client->RandomPrompt(8), 2, &stream);
  while (!stream.finished) client->Poll();
}

}  // namespace bench
