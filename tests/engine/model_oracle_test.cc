// Rule 3 on tiny models: batched, chunked, cached and preempted requests equal their alone runs bit
// for bit.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernels/kernel_table.h"
#include "src/engine/open_engine.h"
#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using Random = std::mt19937_64;
using Answers = std::map<uint64_t, Received>;

constexpr int32_t kMaxContext = 96;

std::shared_ptr<const LoadedModel> Open(const std::string& file, const std::string& kernels) {
  ModelOptions options;
  options.kernels = kernels;
  options.num_threads = 1;
  const auto model = LoadedModel::Open(std::string(INLAY_TEST_DATA) + "/gguf/" + file, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.value_or(nullptr);
}

std::unique_ptr<Engine> MakeEngine(std::shared_ptr<const LoadedModel> model, OpenOptions options) {
  options.manual = true;
  options.max_context_tokens = kMaxContext;
  options.max_sequences = 6;
  absl::StatusOr<std::unique_ptr<Engine>> engine = OpenEngine(std::move(model), options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

struct Workload {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<RequestSpec> specs;
};

// Prompts share a prefix and leave it at any position.
Workload MakeWorkload(Random* random, int32_t vocab_size) {
  Workload workload;
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>((*random)() % static_cast<uint64_t>(high - low + 1));
  };
  std::vector<int32_t> shared(64);
  for (int32_t& id : shared) id = pick(3, vocab_size - 1);
  for (int i = 0; i < 7; ++i) {
    std::vector<int32_t> prompt(shared.begin(), shared.begin() + pick(1, 60));
    prompt.push_back(pick(3, vocab_size - 1));
    workload.prompts.push_back(prompt);
    RequestSpec spec;
    spec.prompt_kind = PromptKind::kIds;
    spec.max_new_tokens = pick(1, 16);
    spec.sampling.temperature = static_cast<float>(pick(0, 1));
    spec.sampling.num_logprobs = 2;
    spec.sampling.seed = (*random)();
    spec.has_seed = true;
    spec.ignore_eos = true;
    workload.specs.push_back(spec);
  }
  return workload;
}

// Submits request i after i * gap steps, runs to the end, and returns the answers in the order of
// the requests.
std::vector<Received> Run(Engine* engine, const Workload& workload, int gap) {
  Answers answers;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < workload.specs.size(); ++i) {
    RequestSpec spec = workload.specs[i];
    spec.prompt_ids = workload.prompts[i];
    uint64_t id = 0;
    const absl::Status status = engine->Submit(spec, &id);
    EXPECT_TRUE(status.ok()) << status;
    ids.push_back(id);
    for (int step = 0; step < gap; ++step) EXPECT_TRUE(engine->Step().ok());
  }
  while (engine->Step().value_or(false)) {
    const absl::Status status = engine->scheduler().CheckInvariants();
    EXPECT_TRUE(status.ok()) << status;
  }
  const auto add = [&](size_t, const Event& event) { answers[event.id].Add(event); };
  while (engine->queue()->Poll(64, 0, add).value_or(0) != 0) {
  }
  std::vector<Received> ordered;
  for (const uint64_t id : ids) ordered.push_back(answers[id]);
  return ordered;
}

Received RunAloneOn(const std::shared_ptr<const LoadedModel>& model, DType kv_dtype,
                    const Workload& workload, size_t index) {
  OpenOptions options;
  options.kv_dtype = kv_dtype;
  options.num_threads = 1;
  options.kv_tokens = kMaxContext;
  options.prefix_cache = false;
  options.max_step_tokens = kMaxContext;
  const Workload one{{workload.prompts[index]}, {workload.specs[index]}};
  return Run(MakeEngine(model, options).get(), one, 0)[0];
}

void Compare(const std::string& file, const std::string& kernels, DType kv_dtype, uint64_t seed) {
  SCOPED_TRACE(file + " " + kernels + " " + DTypeName(kv_dtype) + " seed " + std::to_string(seed));
  Random random(seed);
  const std::shared_ptr<const LoadedModel> model = Open(file, kernels);
  ASSERT_NE(model, nullptr);
  const Workload workload = MakeWorkload(&random, model->model().config.vocab_size);
  OpenOptions options;
  options.kv_dtype = kv_dtype;
  options.num_threads = 1 + static_cast<int64_t>(seed % 3);
  options.kv_tokens = 128 + 16 * (random() % 8);
  options.max_step_tokens = 1 + static_cast<int64_t>(random() % 40);
  const std::unique_ptr<Engine> engine = MakeEngine(model, options);
  ASSERT_NE(engine, nullptr);
  const std::vector<Received> got = Run(engine.get(), workload, static_cast<int>(random() % 5));
  for (size_t i = 0; i < got.size(); ++i) {
    const Received alone = RunAloneOn(model, kv_dtype, workload, i);
    EXPECT_EQ(got[i].num_finished, 1);
    EXPECT_EQ(got[i].ids, alone.ids) << "request " << i;
    ASSERT_EQ(got[i].logprobs.size(), alone.logprobs.size());
    for (size_t j = 0; j < alone.logprobs.size(); ++j) {
      EXPECT_EQ(got[i].logprobs[j].logprob, alone.logprobs[j].logprob) << "not bit-identical";
    }
  }
}

TEST(ModelOracleTest, AnyScheduleOfATinyModelEqualsTheAloneRuns) {
  uint64_t seed = 1;
  for (const KernelTable* kernels : AvailableKernels()) {
    for (const char* file : {"llama_h64-F16.gguf", "llama_h64-Q4_1.gguf"}) {
      for (const DType kv_dtype : {DType::kF16, DType::kF8E4M3, DType::kI8}) {
        Compare(file, kernels->name, kv_dtype, seed++);
      }
    }
  }
}

}  // namespace
}  // namespace llm
