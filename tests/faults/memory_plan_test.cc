// llm_plan against what is then taken: through the host's allocator to the byte, and beside it, by
// counting malloc's bytes.
#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/faults/fault_malloc.h"
#include "tests/faults/tiny_host.h"

namespace llm {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMostBeside = 8 * kMiB;

// Lends pages that malloc does not know, so that its count is of all else.
struct Lender {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> most{0};

  static void* Allocate(void* self, size_t bytes, size_t) {
    auto* lender = static_cast<Lender*>(self);
    void* const pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    const int64_t now =
        lender->bytes.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
    if (now > lender->most.load()) lender->most.store(now);
    return pages;
  }
  static void Deallocate(void* self, void* pages, size_t bytes) {
    static_cast<Lender*>(self)->bytes -= static_cast<int64_t>(bytes);
    munmap(pages, bytes);
  }
};

struct Configuration {
  const char* name;
  uint64_t kv_tokens;
  uint32_t max_context_tokens;
  uint32_t max_sequences;
  uint32_t max_step_tokens;
  uint32_t drive;
  uint32_t num_threads;
};

constexpr Configuration kConfigurations[] = {
    {"small", 256, 128, 2, 32, LLM_DRIVE_MANUAL, 1},
    {"middling", 2048, 256, 16, 128, LLM_DRIVE_THREADS, 2},
    {"large", 16384, 512, 64, 512, LLM_DRIVE_THREADS, 3},
};

std::vector<std::string> Models() {
  std::vector<std::string> paths;
  for (const char* name : {"llama_h64-F32", "llama_h64-Q4_0", "gemma3_text-Q4_1"}) {
    paths.push_back(std::string(INLAY_TEST_DATA) + "/gguf/" + name + ".gguf");
  }
  for (const char* variable : {"INLAY_SMOLLM2", "INLAY_GEMMA3"}) {
    const char* path = std::getenv(variable);
    if (path != nullptr && path[0] != '\0') paths.push_back(path);
  }
  return paths;
}

class MemoryPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    llm_host_init(&host_);
    host_.allocate = Lender::Allocate;
    host_.deallocate = Lender::Deallocate;
    host_.allocator_user_data = &lender_;
    llm_model_options_init(&model_options_);
    model_options_.num_threads = 2;
    model_options_.host = &host_;
  }

  llm_engine_options EngineOptions(const Configuration& configuration, uint32_t kv_dtype) const {
    llm_engine_options options;
    llm_engine_options_init(&options);
    options.kv_dtype = kv_dtype;
    options.kv_tokens = configuration.kv_tokens;
    options.max_context_tokens = configuration.max_context_tokens;
    options.max_sequences = configuration.max_sequences;
    options.max_step_tokens = configuration.max_step_tokens;
    options.drive = configuration.drive;
    options.num_threads = configuration.num_threads;
    options.host = &host_;
    return options;
  }

  llm_memory_plan Plan(const std::string& path, const llm_engine_options& options) const {
    llm_model_source source;
    llm_model_source_init(&source);
    source.kind = LLM_SOURCE_PATH;
    source.path = {path.data(), path.size()};
    llm_memory_plan plan;
    llm_memory_plan_init(&plan);
    EXPECT_EQ(llm_plan(&source, &model_options_, &options, &plan), LLM_OK) << llm_last_error();
    return plan;
  }

  // More requests than run at once, on a queue of their own, to the end.
  static void Serve(llm_engine* engine, uint32_t drive) {
    int32_t prompt[60];
    for (int32_t i = 0; i < 60; ++i) prompt[i] = 3 + i;
    constexpr int kRequests = 80;
    for (int i = 0; i < kRequests; ++i) {
      llm_request request = TinyRequest();
      request.prompt_ids = prompt;
      request.num_prompt_ids = static_cast<size_t>(10 + i % 50);
      request.max_new_tokens = 20;
      request.num_logprobs = 5;
      request.temperature = 1;
      llm_request_id id = 0;
      ASSERT_EQ(llm_submit(engine, &request, &id), LLM_OK) << llm_last_error();
    }
    int num_finished = 0;
    while (num_finished < kRequests) {
      if (drive == LLM_DRIVE_MANUAL) {
        ASSERT_EQ(llm_engine_step(engine, nullptr), LLM_OK);
      }
      llm_event events[16];
      size_t count = 0;
      ASSERT_EQ(llm_poll(llm_engine_queue(engine), events, sizeof(events[0]), 16,
                         drive == LLM_DRIVE_MANUAL ? 0 : -1, &count),
                LLM_OK);
      for (size_t i = 0; i < count; ++i) {
        if (events[i].type != LLM_EVENT_FINISHED) continue;
        EXPECT_EQ(events[i].status, LLM_OK);
        ++num_finished;
      }
    }
  }

  void Compare(const std::string& path, const Configuration& configuration, uint32_t kv_dtype) {
    const llm_engine_options options = EngineOptions(configuration, kv_dtype);
    const llm_memory_plan plan = Plan(path, options);
    lender_.most.store(lender_.bytes.load());
    const int64_t before = NumLiveBytes();
    TakeMostLiveBytes();
    llm_model* model = nullptr;
    ASSERT_EQ(llm_model_open(path.data(), path.size(), &model_options_, &model), LLM_OK)
        << llm_last_error();
    EXPECT_EQ(static_cast<uint64_t>(lender_.most.load()), plan.weights_bytes + plan.loading_bytes);
    const int64_t tokenizer = static_cast<int64_t>(plan.tokenizer_bytes);
    const int64_t opening = TakeMostLiveBytes() - before - tokenizer;
    llm_engine_options limited = options;
    limited.max_memory_bytes = plan.kv_bytes + plan.workspace_bytes;
    llm_engine* engine = nullptr;
    ASSERT_EQ(llm_engine_open(model, &limited, &engine), LLM_OK) << llm_last_error();
    const int64_t planned =
        static_cast<int64_t>(plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
    EXPECT_EQ(lender_.bytes.load(), planned);
    lender_.most.store(lender_.bytes.load());
    const int64_t beside = NumLiveBytes() - before - tokenizer;
    Serve(engine, configuration.drive);
    EXPECT_EQ(lender_.most.load(), planned) << "beyond the limit, or given back, under load";
    const int64_t serving = TakeMostLiveBytes() - before - tokenizer;
    EXPECT_LT(beside, kMostBeside);
    EXPECT_LT(serving, kMostBeside);
    std::printf(
        "%-24s %-8s kv %u: planned %9lld KiB = taken; beside it %lld KiB open, %lld KiB "
        "serving, %lld KiB while the model opened\n",
        path.substr(path.rfind('/') + 1).c_str(), configuration.name, kv_dtype,
        static_cast<long long>(planned / 1024), static_cast<long long>(beside / 1024),
        static_cast<long long>(serving / 1024), static_cast<long long>(opening / 1024));
    EXPECT_EQ(llm_engine_close(engine), LLM_OK);
    limited.max_memory_bytes -= 1;
    EXPECT_EQ(llm_engine_open(model, &limited, &engine), LLM_RESOURCE_EXHAUSTED);
    llm_model_release(model);
    EXPECT_EQ(lender_.bytes.load(), 0);
  }

  Lender lender_;
  llm_host host_;
  llm_model_options model_options_;
};

// INLAY_SMOLLM2 and INLAY_GEMMA3 name real models to add.
TEST_F(MemoryPlanTest, IsWhatIsTakenAndLittleIsTakenBesideIt) {
  for (const std::string& path : Models()) {
    for (const Configuration& configuration : kConfigurations) {
      for (const uint32_t kv_dtype : {LLM_KV_F16, LLM_KV_INT8}) {
        SCOPED_TRACE(testing::Message() << path << " " << configuration.name << " " << kv_dtype);
        Compare(path, configuration, kv_dtype);
      }
    }
  }
}

}  // namespace
}  // namespace llm
