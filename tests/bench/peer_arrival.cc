// llama.cpp on the workload `arrival`: streams decode, a long prompt comes in, how long do they
// wait?
//
// Usage: peer-arrival MODEL THREADS STREAMS PROMPT LATE TOKENS BATCH FLASH_ATTENTION(0|1)
// Batches are filled as its server fills them: one token of each decoding stream, then the late
// prompt up to the batch size. Without HTTP and sampling it is a little faster than the server.
// Prints one JSON object. Compiled by compare.py against the peer's own headers.
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

[[noreturn]] void Fail(const char* message) {
  std::fprintf(stderr, "peer-arrival: %s\n", message);
  std::exit(1);
}

// The next batch under construction; tokens are pseudo-random, the answers are not looked at.
struct BatchFiller {
  llama_batch batch;
  int vocab_size;
  unsigned random = 1;

  void Add(int sequence, int position, bool wants_logits) {
    random = random * 1664525u + 1013904223u;
    const int i = batch.n_tokens++;
    batch.token[i] = static_cast<int>((random >> 8) % static_cast<unsigned>(vocab_size));
    batch.pos[i] = position;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = sequence;
    batch.logits[i] = wants_logits;
  }
};

struct Options {
  const char* model;
  int threads, streams, prompt, late, tokens, batch, flash_attention;
};

llama_context* OpenContext(const Options& options, llama_model* model) {
  llama_context_params params = llama_context_default_params();
  params.n_seq_max = static_cast<uint32_t>(options.streams + 1);
  const int steps = options.tokens + 2 * (options.late / options.batch + 2);
  const int total = options.streams * (options.prompt + steps + 64) + options.late + 1024;
  params.n_ctx = static_cast<uint32_t>(total);
  params.kv_unified = true;  // sequences of such different lengths share one buffer
  params.n_batch = static_cast<uint32_t>(options.batch);
  params.n_ubatch = static_cast<uint32_t>(std::min(options.batch, 512));
  params.n_threads = params.n_threads_batch = options.threads;
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) Fail("no context");
  return context;
}

double Decode(llama_context* context, BatchFiller* filler) {
  const Clock::time_point begin = Clock::now();
  if (llama_decode(context, filler->batch) != 0) Fail("llama_decode failed");
  llama_synchronize(context);
  filler->batch.n_tokens = 0;
  return Seconds(Clock::now() - begin);
}

void Run(const Options& options, llama_context* context, BatchFiller* filler) {
  for (int stream = 0; stream < options.streams; ++stream) {
    for (int i = 0; i < options.prompt; ++i) {
      filler->Add(stream, i, i + 1 == options.prompt);
      if (filler->batch.n_tokens == options.batch) Decode(context, filler);
    }
  }
  if (filler->batch.n_tokens > 0) Decode(context, filler);
  int position = options.prompt;
  const auto add_streams = [&] {
    for (int stream = 0; stream < options.streams; ++stream) filler->Add(stream, position, true);
    ++position;
  };
  std::vector<double> gaps;
  for (int step = 0; step < options.tokens / 2; ++step) {
    add_streams();
    gaps.push_back(Decode(context, filler));
  }
  std::sort(gaps.begin(), gaps.end());
  double worst = 0, ttft = 0;
  for (int done = 0; done < options.late;) {
    add_streams();
    while (done < options.late && filler->batch.n_tokens < options.batch) {
      filler->Add(options.streams, done, done + 1 == options.late);
      ++done;
    }
    const double gap = Decode(context, filler);
    worst = std::max(worst, gap);
    ttft += gap;
  }
  std::printf("{\"worst_gap_s\": %.6f, \"median_gap_s\": %.6f, \"ttft_s\": %.6f}\n", worst,
              gaps[gaps.size() / 2], ttft);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) Fail("MODEL THREADS STREAMS PROMPT LATE TOKENS BATCH FLASH_ATTENTION");
  const auto number = [&](int i) { return std::atoi(argv[i]); };
  const Options options = {argv[1],   number(2), number(3), number(4),
                           number(5), number(6), number(7), number(8)};
  if (options.streams < 1 || options.late < 1 || options.tokens < 2 ||
      options.batch <= options.streams)
    Fail("numbers out of range");
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(options.model, llama_model_default_params());
  if (model == nullptr) Fail("the model could not be loaded");
  llama_context* context = OpenContext(options, model);
  BatchFiller filler = {llama_batch_init(options.batch, 0, 1),
                        llama_vocab_n_tokens(llama_model_get_vocab(model))};
  Run(options, context, &filler);
  llama_batch_free(filler.batch);
  llama_free(context);
  llama_model_free(model);
  return 0;
}
