// Rule 3 on real models: any schedule gives each request, bit for bit, the tokens and
// log-probabilities that it has alone: a fresh engine, no cache, one chunk, one thread.
//
// Workload i runs configuration i of {Llama, Gemma with windows} x {Q4_1 with int8 activations,
// F16}, and experts, sinks, MXFP4 and latent attention where the shared data are, x {f16, fp8, int8
// KV} x {1, 2, 3 threads} x {each instruction set at hand}, round robin. INLAY_ORACLE_WORKLOADS
// sets their number, INLAY_ORACLE_FIRST the first one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "src/engine/open_engine.h"
#include "tests/engine/engine_harness.h"
#include "tests/engine/reconcile.h"

namespace llm {
namespace {

constexpr int kContext = 192;  // six windows of the Gemma model
constexpr int kVocabSize = 512;
constexpr const char* kModels[] = {INLAY_TEST_DATA "/gguf/llama_h64-Q4_1",
                                   INLAY_TEST_DATA "/gguf/gemma3_text-Q4_1",
                                   INLAY_TEST_DATA "/gguf/llama_h64-F16",
                                   INLAY_TEST_DATA "/gguf/gemma3_text-F16",
                                   INLAY_SHARED_DATA "/gguf/converted/qwen3_moe",
                                   INLAY_SHARED_DATA "/gguf/converted/gpt_oss_mxfp4",
                                   INLAY_SHARED_DATA "/gguf/converted/deepseek_v3"};
constexpr DType kKvDtypes[] = {DType::kF16, DType::kF8E4M3, DType::kI8};

using Random = std::mt19937_64;

int Uniform(Random* random, int low, int high) {
  return low + static_cast<int>((*random)() % static_cast<uint64_t>(high - low + 1));
}

bool OneIn(Random* random, int n) { return Uniform(random, 1, n) == 1; }

struct Configuration {
  std::string model;
  std::string kernels;
  DType kv_dtype = DType::kF16;
  int num_threads = 1;
};

std::vector<Configuration> AllConfigurations() {
  std::vector<Configuration> all;
  for (const KernelTable* kernels : AvailableKernels()) {
    if (std::string(kernels->name) == "reference") continue;
    for (const char* model : kModels) {
      if (!std::ifstream(std::string(model) + ".gguf").good())
        continue;  // shared data may be absent
      for (const DType kv_dtype : kKvDtypes) {
        for (const int num_threads : {1, 2, 3}) {
          all.push_back({model, kernels->name, kv_dtype, num_threads});
        }
      }
    }
  }
  return all;
}

class ModelOracleTest : public testing::Test {
 protected:
  std::shared_ptr<const LoadedModel> Model(const Configuration& configuration) {
    auto& model = models_[configuration.model + "/" + configuration.kernels];
    if (model == nullptr) {
      ModelOptions options;
      options.num_threads = 1;
      options.kernels = configuration.kernels;
      auto opened = LoadedModel::Open(configuration.model + ".gguf", options);
      EXPECT_TRUE(opened.ok()) << opened.status();
      if (opened.ok()) model = *opened;
    }
    return model;
  }

  std::map<std::string, std::shared_ptr<const LoadedModel>> models_;
};

struct Submitted {
  uint64_t id = 0;
  std::vector<int32_t> prompt;
  RequestSpec spec;
  bool cancelled = false;
  std::map<uint32_t, Received> received;  // of each choice
  int num_finished = 0;
  RequestStats stats;  // of all choices
};

OpenOptions AloneOptions(const Configuration& configuration) {
  OpenOptions options;
  options.manual = true;
  options.num_threads = 1;
  options.kv_dtype = configuration.kv_dtype;
  options.max_context_tokens = kContext;
  options.kv_tokens = kContext + 16;
  options.max_sequences = 1;
  options.max_step_tokens = kContext;
  options.prefix_cache = false;
  return options;
}

OpenOptions RandomOptions(const Configuration& configuration, Random* random) {
  OpenOptions options = AloneOptions(configuration);
  options.num_threads = configuration.num_threads;
  options.block_size = 16 << Uniform(random, 0, 1);
  // Room for one request of the full context and little more, so that running ones are preempted.
  options.kv_tokens =
      static_cast<uint64_t>(kContext + 32 * Uniform(random, 1, OneIn(random, 2) ? 2 : 8));
  options.max_sequences = Uniform(random, 1, 8);
  options.max_step_tokens = OneIn(random, 4) ? kContext : Uniform(random, 1, 64);
  options.prefix_cache = !OneIn(random, 4);
  options.policy = OneIn(random, 2) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  return options;
}

// Prompts follow one of two texts and diverge from it anywhere, so that whole and partly filled
// blocks are reused.
std::vector<int32_t> RandomPrompt(Random* random) {
  std::vector<int32_t> prompt(static_cast<size_t>(
      OneIn(random, 2) ? Uniform(random, 1, 32) : Uniform(random, 1, kContext - 120)));
  const int text = Uniform(random, 0, 1);
  const int diverges_at = Uniform(random, 0, kContext);
  for (int i = 0; i < static_cast<int>(prompt.size()); ++i) {
    const int follows = (i * 37 + text * 101 + i * i % 61) % (kVocabSize - 8);
    prompt[static_cast<size_t>(i)] =
        8 + (i < diverges_at ? follows : Uniform(random, 0, kVocabSize - 9));
  }
  return prompt;
}

void MakeRequest(Random* random, Submitted* submitted) {
  submitted->prompt = RandomPrompt(random);
  RequestSpec& spec = submitted->spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.prompt_ids = submitted->prompt;
  spec.max_new_tokens = Uniform(random, 1, OneIn(random, 2) ? 120 : 16);
  spec.ignore_eos = OneIn(random, 2);
  spec.sampling.temperature = OneIn(random, 2) ? 0.0f : 1.0f;
  spec.sampling.top_k = OneIn(random, 2) ? 40 : 0;
  spec.sampling.top_p = OneIn(random, 2) ? 0.9f : 1.0f;
  spec.has_seed = true;
  spec.sampling.seed = (*random)();
  spec.sampling.num_logprobs = 2;
  spec.priority = Uniform(random, 0, 2);
  spec.use_prefix_cache = !OneIn(random, 5);
  if (OneIn(random, 4)) spec.cache_salt = "salt";
  spec.session_id = static_cast<uint64_t>(Uniform(random, 0, 3));
  if (OneIn(random, 4)) spec.choices = Uniform(random, 2, 4);
  if (OneIn(random, 4)) spec.num_prompt_logprobs = Uniform(random, 0, 3);
}

void PollAll(Engine* engine, std::vector<Submitted>* all) {
  size_t count = 0;
  do {
    const auto taken = engine->queue()->Poll(64, 0, [all](size_t, const Event& event) {
      for (Submitted& submitted : *all) {
        if (submitted.id != event.id) continue;
        const bool finished = event.type == EventType::kFinished;
        submitted.num_finished += finished ? 1 : 0;
        if (finished) submitted.stats = *event.stats;
        if (finished && submitted.spec.choices > 1) continue;
        submitted.received[event.choice].Add(
            event, finished ? EventType::kFinished : EventType::kChoiceFinished);
        const Received& received = submitted.received[event.choice];
        if (received.num_finished > 0) ExpectFirstTokenTime(received.stats);
      }
    });
    ASSERT_TRUE(taken.ok()) << taken.status();
    count = *taken;
  } while (count > 0);
}

void Step(Engine* engine, bool* worked) {
  const absl::StatusOr<bool> stepped = engine->Step();
  ASSERT_TRUE(stepped.ok()) << stepped.status();
  const absl::Status invariants = engine->scheduler().CheckInvariants();
  ASSERT_TRUE(invariants.ok()) << invariants;
  *worked = *stepped;
}

void RunAll(Engine* engine, std::vector<Submitted>* all) {
  bool worked = true;
  while (worked && !testing::Test::HasFatalFailure()) Step(engine, &worked);
  PollAll(engine, all);
}

Received RunAlone(const std::shared_ptr<const LoadedModel>& model, const OpenOptions& options,
                  const RequestSpec& spec) {
  auto engine = OpenEngine(model, options);
  std::vector<Submitted> one(1);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return {};
  EXPECT_TRUE((*engine)->Submit(spec, &one[0].id).ok());
  RunAll(engine->get(), &one);
  EXPECT_TRUE((*engine)->Close().ok());
  return one[0].received[0];
}

void CompareLogprobs(const std::vector<TokenLogprob>& got, const std::vector<TokenLogprob>& alone) {
  ASSERT_LE(got.size(), alone.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].id, alone[i].id) << "entry " << i;
    ASSERT_EQ(got[i].logprob, alone[i].logprob) << "entry " << i;
  }
}

void Compare(const Submitted& submitted, const Received& got, const Received& alone) {
  ASSERT_EQ(got.num_finished, 1) << got.message;
  ASSERT_LE(got.ids.size(), alone.ids.size());
  if (!submitted.cancelled) {
    EXPECT_EQ(got.ids.size(), alone.ids.size());
    EXPECT_EQ(got.text, alone.text);
    EXPECT_EQ(got.reason, alone.reason) << got.message;
  }
  EXPECT_TRUE(std::equal(got.ids.begin(), got.ids.end(), alone.ids.begin()));
  CompareLogprobs(got.logprobs, alone.logprobs);
  // A cancel may come in the middle of the prompt.
  if (!submitted.cancelled) {
    EXPECT_EQ(got.prompt_ids, alone.prompt_ids);
  }
  EXPECT_FALSE(got.prompt_after_token);
  CompareLogprobs(got.prompt_logprobs, alone.prompt_logprobs);
}

// Counts what the workloads exercised, so that a run that preempts or reuses nothing shows.
struct Totals {
  uint64_t requests = 0, choices = 0, preemptions = 0, cached_tokens = 0, steps = 0, cancelled = 0;
  uint64_t pins = 0;
};

// What does not fit is refused.
void Pin(Engine* engine, const std::vector<int32_t>& prompt, std::vector<uint64_t>* pins,
         Totals* totals) {
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.prompt_ids = prompt;
  const absl::StatusOr<uint64_t> pin = engine->PinPrefix(spec);
  const absl::Status invariants = engine->scheduler().CheckInvariants();
  ASSERT_TRUE(invariants.ok()) << invariants;
  if (!pin.ok()) return;
  pins->push_back(*pin);
  ++totals->pins;
}

void RunWorkload(const std::shared_ptr<const LoadedModel>& model,
                 const Configuration& configuration, uint64_t seed, Totals* totals) {
  SCOPED_TRACE(testing::Message() << "workload " << seed << ": " << configuration.model << " "
                                  << configuration.kernels << " "
                                  << DTypeName(configuration.kv_dtype) << " threads "
                                  << configuration.num_threads);
  Random random(seed);
  auto engine = OpenEngine(model, RandomOptions(configuration, &random));
  ASSERT_TRUE(engine.ok()) << engine.status();
  std::vector<Submitted> all(static_cast<size_t>(Uniform(&random, 2, 10)));
  std::vector<uint64_t> pins;
  for (Submitted& submitted : all) {
    MakeRequest(&random, &submitted);
    ASSERT_TRUE((*engine)->Submit(submitted.spec, &submitted.id).ok());
    bool worked = true;
    for (int i = Uniform(&random, 0, OneIn(&random, 2) ? 1 : 8); i > 0; --i)
      Step(engine->get(), &worked);
    Submitted& victim = all[static_cast<size_t>(Uniform(&random, 0, 63)) % all.size()];
    if (victim.id != 0 && OneIn(&random, 6)) {
      victim.cancelled |= (*engine)->Cancel(victim.id).ok();
      ++totals->cancelled;
    }
    if (OneIn(&random, 3)) {
      const auto hint = static_cast<SessionHint>(Uniform(&random, 0, 3));
      const auto session_id = static_cast<uint64_t>(Uniform(&random, 1, 4));
      EXPECT_TRUE((*engine)->HintSession(session_id, hint).ok());
    }
    if (OneIn(&random, 5)) Pin(engine->get(), submitted.prompt, &pins, totals);
    if (OneIn(&random, 2)) PollAll(engine->get(), &all);
  }
  if (OneIn(&random, 2)) RunAll(engine->get(), &all);
  for (const uint64_t pin : pins) EXPECT_TRUE((*engine)->UnpinPrefix(pin).ok());
  RunAll(engine->get(), &all);
  const EngineMetrics metrics = (*engine)->Metrics();
  EXPECT_EQ(metrics.scheduler.held_blocks_current, 0);
  totals->requests += all.size();
  totals->preemptions += metrics.scheduler.preemptions_total;
  totals->cached_tokens += metrics.scheduler.cached_tokens_total;
  totals->steps += metrics.step.steps_total;
  std::vector<RequestStats> finished;
  for (const Submitted& submitted : all) finished.push_back(submitted.stats);
  // A pin's FINISHED goes to its caller.
  if (finished.size() == metrics.step.finished_requests_total) ExpectReconciled(finished, metrics);
  ExpectLogReconciled((*engine)->log(), metrics);
  EXPECT_TRUE((*engine)->Close().ok());
  // Each choice is the answer of a request with its seed; the first one tells the prompt.
  for (const Submitted& submitted : all) {
    EXPECT_EQ(submitted.num_finished, 1);
    ASSERT_EQ(submitted.received.size(), static_cast<size_t>(submitted.spec.choices));
    totals->choices += submitted.spec.choices > 1 ? submitted.received.size() : 0;
    for (const auto& [choice, received] : submitted.received) {
      RequestSpec spec = submitted.spec;
      spec.choices = 1;
      if (choice > 0) spec.num_prompt_logprobs = -1;
      spec.sampling.seed = received.stats.seed;
      Compare(submitted, received, RunAlone(model, AloneOptions(configuration), spec));
    }
  }
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

TEST_F(ModelOracleTest, AnyScheduleGivesEachRequestTheAnswerThatItHasAlone) {
  const std::vector<Configuration> configurations = AllConfigurations();
  const uint64_t first = FromEnvironment("INLAY_ORACLE_FIRST", 0);
  const uint64_t count = FromEnvironment("INLAY_ORACLE_WORKLOADS", 200);
  Totals totals;
  uint64_t done = 0;
  for (; done < count && !HasFailure(); ++done) {
    const Configuration& configuration = configurations[(first + done) % configurations.size()];
    const auto model = Model(configuration);
    ASSERT_NE(model, nullptr);
    RunWorkload(model, configuration, first + done, &totals);
  }
  std::cout << done << " workloads over " << configurations.size()
            << " configurations: " << totals.requests << " requests, " << totals.choices
            << " choices, " << totals.steps << " steps, " << totals.preemptions << " preemptions, "
            << totals.cached_tokens << " cached tokens, " << totals.cancelled << " cancels, "
            << totals.pins << " pins\n";
  EXPECT_GT(totals.preemptions, 0u);
  EXPECT_GT(totals.cached_tokens, 0u);
  EXPECT_GT(totals.pins, 0u);
}

// A text that two requests of the same engine share with them; they decode beside it.
TEST_F(ModelOracleTest, AScoreAndAnEmbeddingAreTheSameAloneAndAmongOthers) {
  for (const Configuration& configuration : AllConfigurations()) {
    SCOPED_TRACE(testing::Message()
                 << configuration.model << " " << configuration.kernels << " "
                 << DTypeName(configuration.kv_dtype) << " threads " << configuration.num_threads);
    const auto model = Model(configuration);
    ASSERT_NE(model, nullptr);
    Random random(7);
    Submitted other;
    MakeRequest(&random, &other);
    std::vector<int32_t> text = RandomPrompt(&random);
    text.resize(100, 9);
    ScoreSpec spec;
    spec.prompt_kind = PromptKind::kIds;
    spec.ids = text;
    auto alone = OpenEngine(model, AloneOptions(configuration));
    ASSERT_TRUE(alone.ok()) << alone.status();
    const auto expected = (*alone)->Score(spec);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EmbedSpec embed;
    embed.prompt_kind = PromptKind::kIds;
    embed.ids = text;
    const auto expected_values = (*alone)->Embed(embed);
    ASSERT_TRUE(expected_values.ok()) << expected_values.status();
    auto engine = OpenEngine(model, RandomOptions(configuration, &random));
    ASSERT_TRUE(engine.ok()) << engine.status();
    uint64_t id = 0;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE((*engine)->Submit(other.spec, &id).ok());
    const auto scored = (*engine)->Score(spec);
    ASSERT_TRUE(scored.ok()) << scored.status();
    EXPECT_EQ(*scored, *expected);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE((*engine)->Submit(other.spec, &id).ok());
    const auto values = (*engine)->Embed(embed);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(*values, *expected_values);
    EXPECT_TRUE((*alone)->Close().ok());
    EXPECT_TRUE((*engine)->Close().ok());
  }
}

}  // namespace
}  // namespace llm
