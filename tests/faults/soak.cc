// soak MINUTES: loads one engine without pause, and fails when memory grows, a counter does not
// reconcile, or a request is lost, answered twice or wrongly.
#include <inlay/llm.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/faults/host_state.h"
#include "tests/faults/soak_load.h"

namespace llm {
namespace {

using Clock = std::chrono::steady_clock;

struct Sample {
  double minutes = 0;
  double resident_kib = 0;
  double allocated_kib = 0;  // by malloc, not freed
};

double ResidentKib() {
  long size = 0;
  long resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

Sample TakeSample(double minutes) {
  const struct mallinfo2 info = mallinfo2();
  return {minutes, ResidentKib(), static_cast<double>(info.uordblks + info.hblkhd) / 1024};
}

// By least squares, KiB a minute.
double Slope(const std::vector<Sample>& samples, double Sample::*value) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Sample& sample : samples) {
    n += 1;
    x += sample.minutes;
    y += sample.*value;
    xx += sample.minutes * sample.minutes;
    xy += sample.minutes * sample.*value;
  }
  const double spread = n * xx - x * x;
  return spread > 0 ? (n * xy - x * y) / spread : 0;
}

llm_metrics_snapshot Metrics(const llm_engine* engine) {
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  llm_metrics(engine, &metrics);
  return metrics;
}

void Print(const Sample& sample, const llm_metrics_snapshot& m, const Ledger& ledger) {
  std::printf(
      "%6.1f min  rss %.0f KiB  allocated %.0f KiB  finished %llu of %llu  cancelled %llu  "
      "deadline %llu  threw %llu  steps %llu  tokens %llu  preempted %llu  evicted %llu\n",
      sample.minutes, sample.resident_kib, sample.allocated_kib,
      static_cast<unsigned long long>(ledger.finished.load()),
      static_cast<unsigned long long>(ledger.accepted.load()),
      static_cast<unsigned long long>(ledger.cancelled.load()),
      static_cast<unsigned long long>(ledger.missed.load()),
      static_cast<unsigned long long>(ledger.failed.load()),
      static_cast<unsigned long long>(m.steps_total),
      static_cast<unsigned long long>(m.generated_tokens_total),
      static_cast<unsigned long long>(m.preemptions_total),
      static_cast<unsigned long long>(m.evicted_blocks_total));
  std::fflush(stdout);
}

void ExpectEqual(const char* what, uint64_t got, uint64_t wanted, Ledger* ledger) {
  if (got == wanted) return;
  ledger->Error(std::string(what) + " is " + std::to_string(got) + ", expected " +
                std::to_string(wanted));
}

// Once nothing runs any more.
void Reconcile(const llm_metrics_snapshot& m, Ledger* ledger) {
  ExpectEqual("healthy", m.healthy, 1, ledger);
  ExpectEqual("submitted", m.submitted_requests_total, m.finished_requests_total, ledger);
  ExpectEqual("accepted", ledger->accepted, ledger->finished, ledger);
  ExpectEqual("finished", m.finished_requests_total, ledger->finished + ledger->calls, ledger);
  ExpectEqual("cancelled", m.cancelled_requests_total, ledger->cancelled, ledger);
  ExpectEqual("deadline", m.deadline_requests_total, ledger->missed, ledger);
  ExpectEqual("failed", m.failed_requests_total, ledger->failed, ledger);
  ExpectEqual("running", m.running_current + m.waiting_current, 0, ledger);
  ExpectEqual("held blocks", m.held_blocks_current, 0, ledger);
  ExpectEqual("blocks", m.free_blocks_current + m.cached_blocks_current, m.total_blocks_current,
              ledger);
  ExpectEqual("failed steps", m.failed_steps_total, 0, ledger);
}

// Samples every second, prints every ten; what is returned leaves the warm-up out.
std::vector<Sample> Watch(double minutes, const llm_engine* engine, const Ledger& ledger) {
  std::vector<Sample> samples;
  samples.reserve(static_cast<size_t>(minutes * 60) + 10);
  const double warm_up = minutes > 2 ? 1 : minutes / 2;
  const auto start = Clock::now();
  for (int second = 1; second <= minutes * 60; ++second) {
    std::this_thread::sleep_until(start + std::chrono::seconds(second));
    const Sample sample = TakeSample(second / 60.0);
    if (sample.minutes > warm_up) samples.push_back(sample);
    if (second % 10 == 0) Print(sample, Metrics(engine), ledger);
  }
  return samples;
}

int Soak(double minutes, double most_kib_per_minute) {
  const auto ledger = std::make_unique<Ledger>();
  llm_model* model = nullptr;
  llm_engine* engine = nullptr;
  // A pool that holds little more than the longest request, for eight at once.
  llm_engine_options options = TinyEngineOptions(LLM_DRIVE_THREADS);
  options.kv_tokens = 256;
  options.max_sequences = 8;
  options.max_queued_requests = 64;
  options.max_pending_bytes = 2048;
  if (OpenTinyModel(&model) != LLM_OK || llm_engine_open(model, &options, &engine) != LLM_OK) {
    std::fprintf(stderr, "soak: %s\n", llm_last_error());
    return 1;
  }
  Answer answer;
  AskOnce(engine, LLM_DRIVE_THREADS, &answer);
  std::copy(std::begin(answer.ids), std::end(answer.ids), ledger->expected.begin());
  ledger->accepted = ledger->finished = 1;
  SoakLoad load(model, engine, ledger.get());
  const std::vector<Sample> samples = Watch(minutes, engine, *ledger);
  load.Stop();
  llm_cache_flush(engine);
  answer = Answer();
  if (AskOnce(engine, LLM_DRIVE_THREADS, &answer) != LLM_OK) ledger->Error("it answers no more");
  ++ledger->accepted;
  ++ledger->finished;
  Reconcile(Metrics(engine), ledger.get());
  if (llm_engine_close(engine) != LLM_OK) ledger->Error(llm_last_error());
  llm_model_release(model);
  if (!WaitForThreads(1)) ledger->Error("threads are left");
  const double slope = Slope(samples, &Sample::resident_kib);
  std::printf("slope over %zu s: rss %+.1f KiB/min, allocated %+.1f KiB/min (most allowed %.0f)\n",
              samples.size(), slope, Slope(samples, &Sample::allocated_kib), most_kib_per_minute);
  if (slope > most_kib_per_minute) ledger->Error("resident memory grows");
  std::printf("%s: %llu errors\n", ledger->errors == 0 ? "passed" : "FAILED",
              static_cast<unsigned long long>(ledger->errors.load()));
  return ledger->errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  const double minutes = argc > 1 ? std::atof(argv[1]) : 0;
  if (minutes <= 0) {
    std::fprintf(stderr, "usage: soak MINUTES [MOST_KIB_PER_MINUTE]\n");
    return 2;
  }
  // What malloc keeps back settles over minutes: a short run allows more.
  const double most = argc > 2 ? std::atof(argv[2]) : (minutes >= 30 ? 16 : 512);
  return llm::Soak(minutes, most);
}
