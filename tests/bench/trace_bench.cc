// What a trace costs: decode steps with it on and off, in turn, in one engine. Prints the median
// ratio.
//
// Usage: trace-bench MODEL.gguf [TIMES [STREAMS]]. Manual drive: a window is exactly its steps.
#include <inlay/llm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kWindowSteps = 16;  // some 50 ms of SmolLM2: longer than a timer's jitter
constexpr int kWarmSteps = 2;
constexpr size_t kPromptTokens = 64;

using Clock = std::chrono::steady_clock;

void Check(llm_status status) {
  if (status == LLM_OK) return;
  std::fprintf(stderr, "trace-bench: %s: %s\n", llm_status_name(status), llm_last_error());
  std::exit(1);
}

class Bench {
 public:
  Bench(const std::string& model, uint32_t streams) : streams_(streams) {
    Check(llm_model_open(model.data(), model.size(), nullptr, &model_));
    llm_engine_options options;
    llm_engine_options_init(&options);
    options.drive = LLM_DRIVE_MANUAL;
    options.max_sequences = streams;
    options.prefix_cache = LLM_OFF;
    options.kv_tokens = streams * (kPromptTokens + 5 * kWindowSteps);
    Check(llm_engine_open(model_, &options, &engine_));
  }
  ~Bench() {
    llm_engine_close(engine_);
    llm_model_release(model_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Traced over untraced time of two windows each, in the order A B B A: what grows with the
  // context is the same for both.
  double Ratio(bool traced_first) {
    double seconds[2] = {};
    Begin();
    for (const bool inner : {false, true, true, false}) {
      const bool traced = inner != traced_first;
      seconds[traced ? 1 : 0] += Window(traced);
    }
    End();
    return seconds[1] / seconds[0];
  }

 private:
  void Begin() {
    std::vector<int32_t> prompt(kPromptTokens);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(8 + 7 * i);
    llm_request request;
    llm_request_init(&request);
    request.prompt_ids = prompt.data();
    request.num_prompt_ids = prompt.size();
    request.max_new_tokens = 5 * kWindowSteps;
    request.ignore_eos = LLM_ON;
    ids_.assign(streams_, 0);
    for (llm_request_id& id : ids_) Check(llm_submit(engine_, &request, &id));
    Step(static_cast<int>(streams_) + 2);  // every prompt is in, and the caches are warm
  }

  void Step(int count) {
    llm_event events[64];
    size_t taken = 0;
    for (int i = 0; i < count; ++i) {
      Check(llm_engine_step(engine_, nullptr));
      Check(llm_poll(llm_engine_queue(engine_), events, sizeof(events[0]), 64, 0, &taken));
    }
  }

  // Starting and stopping, which write the file, are not in the time, nor is what they did to the
  // caches.
  double Window(bool traced) {
    static const std::string path = "/dev/null";
    if (traced) Check(llm_trace_start(engine_, path.data(), path.size()));
    Step(kWarmSteps);
    const Clock::time_point start = Clock::now();
    Step(kWindowSteps);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (traced) Check(llm_trace_stop(engine_));
    return seconds;
  }

  void End() {
    for (const llm_request_id id : ids_) llm_cancel(engine_, id);
    Step(2);
  }

  const uint32_t streams_;
  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
  std::vector<llm_request_id> ids_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: trace-bench MODEL.gguf [TIMES [STREAMS]]\n");
    return 2;
  }
  const int times = std::max(1, argc > 2 ? std::atoi(argv[2]) : 21);
  const int streams = std::clamp(argc > 3 ? std::atoi(argv[3]) : 1, 1, 32);
  Bench bench(argv[1], static_cast<uint32_t>(streams));
  bench.Ratio(true);  // warms up
  std::vector<double> ratios;
  for (int time = 0; time < times; ++time) ratios.push_back(bench.Ratio(time % 2 == 0));
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1))];
  };
  std::printf(
      "traced / untraced decode time, %d streams, %d times 2 x %d steps each: median %.4f, "
      "quartiles %.4f to %.4f\n",
      streams, times, kWindowSteps, at(0.5), at(0.25), at(0.75));
  return 0;
}
