// llama.cpp, one stream: from its start to the first token, and time per token at growing contexts.
//
// Usage: peer-context MODEL THREADS FLASH_ATTENTION(0|1) TOKENS DEPTH...
// At each depth (ascending): the prompt is extended to it, TOKENS tokens are decoded one by one,
// their median time is printed as one JSON object a line, and they are dropped again. TOKENS 0:
// nothing is decoded, the line comes with the first token. Without sampling and detokenization.
// Compiled by compare.py against the peer's own headers.
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatch = 512;  // its default micro-batch

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[noreturn]] void Fail(const char* message) {
  std::fprintf(stderr, "peer-context: %s\n", message);
  std::exit(1);
}

struct Options {
  const char* model;
  int threads, flash_attention, tokens;
  std::vector<int> depths;
};

// Pseudo-random tokens at the end of sequence 0; the answers are not looked at.
class Stream {
 public:
  Stream(llama_context* context, int vocab_size)
      : context_(context), vocab_size_(vocab_size), batch_(llama_batch_init(kBatch, 0, 1)) {}
  ~Stream() { llama_batch_free(batch_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Append(int num_tokens) {
    batch_.n_tokens = num_tokens;
    for (int i = 0; i < num_tokens; ++i) {
      random_ = random_ * 1664525u + 1013904223u;
      batch_.token[i] = static_cast<int>((random_ >> 8) % static_cast<unsigned>(vocab_size_));
      batch_.pos[i] = length_++;
      batch_.n_seq_id[i] = 1;
      batch_.seq_id[i][0] = 0;
      batch_.logits[i] = i + 1 == num_tokens;
    }
    if (llama_decode(context_, batch_) != 0) Fail("llama_decode failed");
    llama_synchronize(context_);
  }

  void ExtendTo(int length) {
    while (length_ < length) Append(std::min(kBatch, length - length_));
  }

  void CutTo(int length) {
    if (!llama_memory_seq_rm(llama_get_memory(context_), 0, length, -1)) Fail("cannot drop tokens");
    length_ = length;
  }

 private:
  llama_context* context_;
  int vocab_size_;
  llama_batch batch_;
  int length_ = 0;
  unsigned random_ = 1;
};

llama_context* OpenContext(const Options& options, llama_model* model) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.depths.back() + options.tokens + 1);
  params.n_batch = params.n_ubatch = kBatch;
  params.n_threads = params.n_threads_batch = options.threads;
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) Fail("no context");
  return context;
}

void Run(const Options& options, double load_s, Stream* stream) {
  for (const int depth : options.depths) {
    const Clock::time_point begin = Clock::now();
    stream->ExtendTo(depth);
    const double prefill_s = Since(begin);
    std::vector<double> times;
    for (int i = 0; i < options.tokens; ++i) {
      const Clock::time_point token_begin = Clock::now();
      stream->Append(1);
      times.push_back(Since(token_begin));
    }
    std::sort(times.begin(), times.end());
    if (!times.empty()) stream->CutTo(depth);
    std::printf("{\"depth\": %d, \"load_s\": %.6f, \"prefill_s\": %.6f, \"s_per_token\": %.9f}\n",
                depth, load_s, prefill_s, times.empty() ? 0 : times[times.size() / 2]);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) Fail("MODEL THREADS FLASH_ATTENTION TOKENS DEPTH...");
  Options options = {argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), {}};
  for (int i = 5; i < argc; ++i) options.depths.push_back(std::atoi(argv[i]));
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const Clock::time_point begin = Clock::now();
  llama_model* model = llama_model_load_from_file(options.model, llama_model_default_params());
  if (model == nullptr) Fail("the model could not be loaded");
  const double load_s = Since(begin);
  llama_context* context = OpenContext(options, model);
  {
    Stream stream(context, llama_vocab_n_tokens(llama_model_get_vocab(model)));
    Run(options, load_s, &stream);
  }
  llama_free(context);
  llama_model_free(model);
  return 0;
}
