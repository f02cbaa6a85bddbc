// One function a row; a counter that went back (another process) gives no rate.
#include "top/view.h"

#include <cmath>

#include "common/text.h"

namespace top {
namespace {

using tools::Format;

class Screen {
 public:
  Screen(const Snapshot& now, const Snapshot* before, double seconds)
      : now_(now), before_(before), seconds_(seconds) {}

  double Now(const std::string& name, const Labels& labels = {}) const {
    return now_.Value(name, labels);
  }
  // Growth since `before`; NaN when there is none to tell.
  double Growth(const std::string& name, const Labels& labels = {}) const {
    if (before_ == nullptr || seconds_ <= 0) return NAN;
    const double growth = now_.Value(name, labels) - before_->Value(name, labels);
    return growth < 0 ? NAN : growth;
  }
  std::string Rate(const std::string& name) const { return Or(Growth(name) / seconds_, "%.1f/s"); }
  double Seconds() const { return seconds_; }
  const Snapshot& now() const { return now_; }
  // A number, or a dash.
  static std::string Or(double value, const char* format) {
    if (!std::isfinite(value)) return "-";
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
  }
  Histogram Recent(const std::string& name) const {
    const Histogram all = now_.OfHistogram(name);
    if (before_ == nullptr) return all;
    const Histogram recent = Difference(all, before_->OfHistogram(name));
    return recent.Count() > 0 ? recent : all;
  }

 private:
  const Snapshot& now_;
  const Snapshot* before_;
  double seconds_;
};

std::string Requests(const Screen& screen) {
  const auto finished = [&](const char* reason) {
    return screen.Now("vllm:request_success_total", {{"finished_reason", reason}});
  };
  return Format(
      "requests  running %.0f  waiting %.0f  done %.0f (stop %.0f, length %.0f, abort %.0f, error "
      "%.0f) %s  rejected %.0f\n",
      screen.Now("vllm:num_requests_running"), screen.Now("vllm:num_requests_waiting"),
      screen.Now("vllm:request_success_total"), finished("stop"), finished("length"),
      finished("abort"), finished("error"), screen.Rate("vllm:request_success_total").c_str(),
      screen.Now("inlay:rejected_requests_total"));
}

std::string Tokens(const Screen& screen) {
  return Format("tokens    generated %.0f  %s  prompt computed %.0f  %s\n",
                screen.Now("vllm:generation_tokens_total"),
                screen.Rate("vllm:generation_tokens_total").c_str(),
                screen.Now("inlay:computed_tokens_total"),
                screen.Rate("inlay:computed_tokens_total").c_str());
}

std::string Steps(const Screen& screen) {
  const double each =
      screen.Growth("inlay:scheduled_tokens_total") / screen.Growth("inlay:steps_total");
  // A step counts when it ends: one that began before the interval can make it more than all.
  double busy = 100 * screen.Growth("inlay:busy_seconds_total") / screen.Seconds();
  if (busy > 100) busy = 100;
  return Format("steps     %.0f  %s  tokens a step %s  busy %s  failed %.0f\n",
                screen.Now("inlay:steps_total"), screen.Rate("inlay:steps_total").c_str(),
                Screen::Or(each, "%.1f").c_str(), Screen::Or(busy, "%.0f %%").c_str(),
                screen.Now("inlay:failed_steps_total"));
}

std::string StepParts(const Screen& screen) {
  const std::string name = "inlay:step_part_seconds_total";
  const bool recent = screen.Growth(name) > 0;
  const double all = recent ? screen.Growth(name) : screen.Now(name);
  std::string text = "        ";
  for (const std::string& part : screen.now().LabelValues(name, "part")) {
    const Labels labels = {{"part", part}};
    const double seconds = recent ? screen.Growth(name, labels) : screen.Now(name, labels);
    text += "  " + part + " " + Screen::Or(100 * seconds / all, "%.1f %%");
  }
  return text + "\n";
}

std::string Memory(const Screen& screen) {
  constexpr int kBarWidth = 20;
  const double used = screen.Now("vllm:kv_cache_usage_perc");
  const int filled = static_cast<int>(std::lround(std::fmin(std::fmax(used, 0), 1) * kBarWidth));
  const auto blocks = [&](const char* state) {
    return screen.Now("inlay:blocks", {{"state", state}});
  };
  return Format("KV        [%s%s] %.1f %% held  blocks held %.0f, cached %.0f, free %.0f  %s\n",
                std::string(static_cast<size_t>(filled), '#').c_str(),
                std::string(static_cast<size_t>(kBarWidth - filled), '.').c_str(), 100 * used,
                blocks("held"), blocks("cached"), blocks("free"),
                tools::Bytes(static_cast<uint64_t>(screen.Now("inlay:kv_bytes"))).c_str());
}

std::string Cache(const Screen& screen) {
  const double ratio = 100 * screen.Now("vllm:prefix_cache_hits_total") /
                       screen.Now("vllm:prefix_cache_queries_total");
  const double recent = 100 * screen.Growth("vllm:prefix_cache_hits_total") /
                        screen.Growth("vllm:prefix_cache_queries_total");
  return Format("cache     hit rate %s (now %s)  evicted blocks %.0f  preemptions %.0f\n",
                Screen::Or(ratio, "%.1f %%").c_str(), Screen::Or(recent, "%.1f %%").c_str(),
                screen.Now("inlay:evicted_blocks_total"), screen.Now("vllm:num_preemptions_total"));
}

std::string Times(const Screen& screen) {
  const std::pair<const char*, const char*> rows[] = {
      {"queue time", "vllm:request_queue_time_seconds"},
      {"first token", "vllm:time_to_first_token_seconds"},
      {"token gap", "vllm:inter_token_latency_seconds"},
      {"whole request", "vllm:e2e_request_latency_seconds"}};
  std::string text = "ms                   p50        p90        p99      count\n";
  for (const auto& [title, name] : rows) {
    const Histogram histogram = screen.Recent(name);
    text += Format("%-13s", title);
    for (const double quantile : {0.5, 0.9, 0.99})
      text += Format(" %10s", Screen::Or(1e3 * histogram.Quantile(quantile), "%.1f").c_str());
    text += Format(" %10.0f\n", histogram.Count());
  }
  return text;
}

}  // namespace

std::string View(const Snapshot& now, const Snapshot* before, double seconds) {
  const Screen screen(now, before, seconds);
  const bool healthy = screen.Now("inlay:healthy") >= 1;
  return "llm-top   " + now.Label("model_name") + (healthy ? "  healthy" : "  UNHEALTHY") + "\n" +
         Requests(screen) + Tokens(screen) + Steps(screen) + StepParts(screen) + Memory(screen) +
         Cache(screen) + Times(screen);
}

}  // namespace top
