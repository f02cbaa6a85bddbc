// What single rules of the scheduler and of prefix reuse cost and bring on a model: chunks, held
// batches, saved prefixes, the second tier. One JSON line each; ways alternate.
//
// Usage: scheduling-bench MODEL (chunks | hold | saved | tier) [TOKENS [ROUNDS]]
#include <inlay/llm.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/one_token.h"

namespace {

using bench::Check;
using bench::NowNs;

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<int32_t> Prompt(int num_tokens, int document) {
  std::vector<int32_t> ids;
  for (int i = 0; i < num_tokens; ++i) ids.push_back(3 + (i * 7 + document * 31) % 400);
  return ids;
}

class Engine {
 public:
  Engine(llm_model* model, const llm_engine_options& options) {
    Check(llm_engine_open(model, &options, &engine_));
    Ttft(Prompt(100, 9));  // warm
  }
  ~Engine() { llm_engine_close(engine_); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void Submit(const std::vector<int32_t>& ids) { bench::SubmitOneToken(engine_, ids); }
  int64_t WaitForTtft() { return bench::WaitForTtft(engine_); }
  int64_t Ttft(const std::vector<int32_t>& ids) {
    Submit(ids);
    return WaitForTtft();
  }
  llm_engine* get() { return engine_; }
  llm_metrics_snapshot Metrics() {
    llm_metrics_snapshot metrics;
    llm_metrics_snapshot_init(&metrics);
    Check(llm_metrics(engine_, &metrics));
    return metrics;
  }

 private:
  llm_engine* engine_ = nullptr;
};

llm_engine_options Options(int tokens) {
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.kv_tokens = static_cast<uint64_t>(tokens) + 256;
  options.prefix_cache = LLM_OFF;
  return options;
}

// A prompt in one step, and in chunks of 2,048 and 512.
void Chunks(llm_model* model, int tokens, int rounds) {
  const uint32_t budgets[] = {static_cast<uint32_t>(tokens), 2048, 512};
  std::vector<double> ms[3];
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 3; ++i) {
      const int way = round % 2 == 0 ? i : 2 - i;
      llm_engine_options options = Options(tokens);
      options.max_step_tokens = budgets[way];
      Engine engine(model, options);
      ms[way].push_back(Ms(engine.Ttft(Prompt(tokens, round))));
    }
  }
  const double whole = Median(ms[0]);
  std::printf("{\"tokens\": %d, \"whole_ms\": %.0f, \"chunks_2048\": %.3f, \"chunks_512\": %.3f}\n",
              tokens, whole, Median(ms[1]) / whole, Median(ms[2]) / whole);
}

// Eight prompts that come 20 us apart to an idle engine, held or not.
void Hold(llm_model* model, int tokens, int rounds) {
  constexpr int kRequests = 8;
  std::vector<double> mean_ms[2], last_ms[2];
  llm_engine_options options = Options(kRequests * tokens);
  Engine eager(model, options);
  options.hold_us = 500;
  Engine holding(model, options);
  for (int round = 0; round < rounds; ++round) {
    for (int way = 0; way < 2; ++way) {
      Engine& engine = way == 0 ? eager : holding;
      for (int i = 0; i < kRequests; ++i) {
        engine.Submit(Prompt(tokens, round * kRequests + i));
        usleep(20);
      }
      double sum = 0, last = 0;
      for (int i = 0; i < kRequests; ++i) {
        const double ms = Ms(engine.WaitForTtft());
        sum += ms;
        last = std::max(last, ms);
      }
      mean_ms[way].push_back(sum / kRequests);
      last_ms[way].push_back(last);
    }
  }
  std::printf(
      "{\"mean_ttft_ms\": %.2f, \"last_ttft_ms\": %.2f, \"held_mean_ttft_ms\": %.2f, "
      "\"held_last_ttft_ms\": %.2f}\n",
      Median(mean_ms[0]), Median(last_ms[0]), Median(mean_ms[1]), Median(last_ms[1]));
}

void Saved(llm_model* model, int tokens, int rounds) {
  const std::string path = "/tmp/inlay-prefix-" + std::to_string(getpid());
  llm_engine_options options = Options(tokens);
  options.prefix_cache = LLM_ON;
  std::vector<double> computed, save, load, found;
  for (int round = 0; round < rounds; ++round) {
    std::vector<int32_t> ids = Prompt(tokens, round);
    llm_prefix prefix;
    llm_prefix_init(&prefix);
    prefix.prompt_ids = ids.data();
    prefix.num_prompt_ids = ids.size();
    Engine first(model, options);
    computed.push_back(Ms(first.Ttft(ids)));
    int64_t start_ns = NowNs();
    Check(llm_prefix_save(first.get(), &prefix, path.data(), path.size()));
    save.push_back(Ms(NowNs() - start_ns));
    Engine second(model, options);
    start_ns = NowNs();
    Check(llm_prefix_load(second.get(), path.data(), path.size(), nullptr, nullptr, nullptr));
    load.push_back(Ms(NowNs() - start_ns));
    found.push_back(Ms(second.Ttft(ids)));
  }
  unlink(path.c_str());
  std::printf(
      "{\"tokens\": %d, \"computed_ttft_ms\": %.1f, \"save_ms\": %.1f, \"load_ms\": %.1f, "
      "\"loaded_ttft_ms\": %.1f}\n",
      tokens, Median(computed), Median(save), Median(load), Median(found));
}

// Six documents in turn, with room for two.
void Tier(llm_model* model, int tokens, int rounds) {
  constexpr int kDocuments = 6;
  std::vector<double> ms[2];
  llm_engine_options options = Options(2 * tokens);
  options.prefix_cache = LLM_ON;
  options.max_context_tokens = static_cast<uint32_t>(tokens) + 64;
  Engine without(model, options);
  const char folder[] = "/tmp";
  options.spill_folder = {folder, std::strlen(folder)};
  Engine with(model, options);
  for (int round = 0; round <= rounds; ++round) {
    for (int document = 0; document < kDocuments; ++document) {
      for (int way = 0; way < 2; ++way) {
        Engine& engine = way == 0 ? without : with;
        const double ttft_ms = Ms(engine.Ttft(Prompt(tokens, document * 100)));
        if (round > 0) ms[way].push_back(ttft_ms);
      }
    }
  }
  const llm_metrics_snapshot metrics = with.Metrics();
  std::printf(
      "{\"tokens\": %d, \"ttft_ms\": %.1f, \"tier_ttft_ms\": %.1f, \"spilled\": %llu, "
      "\"returned\": %llu, \"read_mb\": %.0f, \"failed\": %llu}\n",
      tokens, Median(ms[0]), Median(ms[1]),
      static_cast<unsigned long long>(metrics.spilled_blocks_total),
      static_cast<unsigned long long>(metrics.returned_blocks_total),
      static_cast<double>(metrics.spill_read_bytes_total) / 1e6,
      static_cast<unsigned long long>(metrics.spill_failed_blocks_total));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[2] : "";
  const int tokens = argc > 3 ? std::atoi(argv[3]) : 0;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 3;
  llm_model* model = nullptr;
  if (argc > 2) Check(llm_model_open(argv[1], std::strlen(argv[1]), nullptr, &model));
  if (what == "chunks") {
    Chunks(model, tokens > 0 ? tokens : 6000, rounds);
  } else if (what == "hold") {
    Hold(model, tokens > 0 ? tokens : 32, rounds);
  } else if (what == "saved") {
    Saved(model, tokens > 0 ? tokens : 2000, rounds);
  } else if (what == "tier") {
    Tier(model, tokens > 0 ? tokens : 2000, rounds);
  } else {
    std::fprintf(stderr,
                 "usage: scheduling-bench MODEL (chunks | hold | saved | tier) "
                 "[TOKENS [ROUNDS]]\n");
    return 2;
  }
  llm_model_release(model);
  return 0;
}
