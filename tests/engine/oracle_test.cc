// Rule 3 on the scripted model: any schedule gives each request the answer that it has alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/engine/engine_harness.h"

namespace llm {
namespace {

using Random = std::mt19937_64;

int Uniform(Random* random, int low, int high) {
  return low + static_cast<int>((*random)() % static_cast<uint64_t>(high - low + 1));
}

HarnessOptions RandomOptions(Random* random) {
  HarnessOptions options;
  options.scheduler.block_size = 1 << Uniform(random, 1, 4);
  options.scheduler.max_context_tokens = 96;
  options.engine.max_context_tokens = 96;
  options.scheduler.max_sequences = Uniform(random, 1, 9);
  options.scheduler.prefix_cache = Uniform(random, 0, 3) != 0;
  options.scheduler.policy = static_cast<SchedulingPolicy>(Uniform(random, 0, 2));
  options.scheduler.admission = static_cast<AdmissionPolicy>(Uniform(random, 0, 2));
  options.scheduler.hash_key[0] = (*random)();
  options.scheduler.hash_key[1] = (*random)();
  const int blocks = 96 / options.scheduler.block_size;
  options.scheduler.num_blocks = {blocks + Uniform(random, 1, blocks)};
  if (Uniform(random, 0, 2) == 0) {
    options.scheduler.groups.push_back(KvGroupSpec{Uniform(random, 2, 24), {1}});
    options.scheduler.num_blocks.push_back(blocks + Uniform(random, 1, blocks));
  }
  options.engine.max_step_tokens = Uniform(random, 1, 40);
  options.engine.step_ns = Uniform(random, 0, 1) * Uniform(random, 1, 200);
  options.engine.token_gap_target_ns = Uniform(random, 0, 1) * Uniform(random, 1, 200);
  options.engine.refuse_late = false;  // whoever is let in has an answer to compare
  if (Uniform(random, 0, 3) == 0) options.engine.max_pending_bytes = 40;
  if (Uniform(random, 0, 1) == 0) {
    options.clock = std::make_shared<TickingClock>();
    options.engine.hold_ns = Uniform(random, 0, 1) * Uniform(random, 1, 100);
  }
  options.scheduler.max_long_sequences = Uniform(random, 0, 2);
  options.scheduler.long_tokens = Uniform(random, 1, 60);
  options.run_ahead = Uniform(random, 0, 1) == 0;
  if (Uniform(random, 0, 2) == 0) {
    options.spill.folder = testing::TempDir();
    options.spill.max_bytes = static_cast<uint64_t>(Uniform(random, 128, 8192));
  }
  return options;
}

struct Submitted {
  uint64_t id = 0;
  std::string prompt;
  RequestSpec spec;
  bool cancelled = false;  // or has a deadline: the answer may be cut off
};

// Prompts share prefixes that diverge at any position, so that whole and partial blocks are reused.
std::string RandomPrompt(Random* random) {
  std::string prompt(static_cast<size_t>(Uniform(random, 1, 60)), 'a');
  if (Uniform(random, 0, 1) == 0) prompt[prompt.size() / 2] = 'b';
  prompt.back() = static_cast<char>('a' + Uniform(random, 0, 3));
  return prompt;
}

void RandomSpec(Random* random, Submitted* submitted) {
  RequestSpec& spec = submitted->spec;
  submitted->prompt = RandomPrompt(random);
  spec.prompt_kind = PromptKind::kText;
  spec.max_new_tokens = Uniform(random, 1, 96 - static_cast<int>(submitted->prompt.size()));
  spec.max_new_tokens = std::min(spec.max_new_tokens, 20);
  spec.sampling.temperature = Uniform(random, 0, 1) == 0 ? 0.0f : 1.0f;
  spec.sampling.top_k = Uniform(random, 0, 1) * 10;
  spec.has_seed = true;
  spec.sampling.seed = (*random)();
  spec.sampling.num_logprobs = Uniform(random, -1, 3);
  spec.priority = Uniform(random, 0, 2);
  spec.use_prefix_cache = Uniform(random, 0, 4) != 0;
  if (Uniform(random, 0, 3) == 0) spec.stop_strings = {"a", "bc"};
  if (Uniform(random, 0, 3) == 0) spec.cache_salt = "salt";
  spec.session_id = static_cast<uint64_t>(Uniform(random, 0, 3));
  if (Uniform(random, 0, 3) == 0) spec.choices = Uniform(random, 2, 5);
  if (Uniform(random, 0, 3) == 0) spec.num_prompt_logprobs = Uniform(random, 0, 2);
  submitted->cancelled = Uniform(random, 0, 7) == 0;
  if (submitted->cancelled) {
    (Uniform(random, 0, 1) == 0 ? spec.completion_timeout_ns : spec.first_token_timeout_ns) =
        Uniform(random, 1, 40) * 1000;
  }
  spec.request_class = static_cast<uint32_t>(Uniform(random, 0, 2));
  spec.token_gap_target_ns = Uniform(random, 0, 1) * Uniform(random, 1, 400);
}

void CompareLogprobs(const std::vector<TokenLogprob>& got, const std::vector<TokenLogprob>& alone) {
  ASSERT_LE(got.size(), alone.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].id, alone[i].id);
    EXPECT_EQ(got[i].logprob, alone[i].logprob) << "not bit-identical";
  }
}

// Each choice is the answer of a request with its seed; the first one tells the prompt.
void Compare(const HarnessOptions& options, const Submitted& submitted, uint32_t choice,
             const Received& got) {
  RequestSpec spec = submitted.spec;
  spec.text = submitted.prompt;
  spec.completion_timeout_ns = spec.first_token_timeout_ns = 0;
  spec.choices = 1;
  if (choice > 0) spec.num_prompt_logprobs = -1;
  spec.sampling.seed = got.stats.seed;
  const Received alone = RunAlone(options, spec);
  ASSERT_EQ(got.num_finished, 1);
  if (!submitted.cancelled) {
    EXPECT_EQ(got.ids, alone.ids);
    EXPECT_EQ(got.text, alone.text);
    EXPECT_EQ(got.reason, alone.reason);
    EXPECT_EQ(got.stop_index, alone.stop_index);
  } else {
    ASSERT_LE(got.ids.size(), alone.ids.size());
    EXPECT_TRUE(std::equal(got.ids.begin(), got.ids.end(), alone.ids.begin()));
    EXPECT_EQ(got.text, alone.text.substr(0, got.text.size()));
  }
  if (!submitted.cancelled) {
    EXPECT_EQ(got.prompt_ids, alone.prompt_ids);
  }
  CompareLogprobs(got.prompt_logprobs, alone.prompt_logprobs);
  CompareLogprobs(got.logprobs, alone.logprobs);
}

// Pins a prefix or drops an earlier pin. What does not fit is refused, and a step that fails may
// end the pin.
void RandomPin(Random* random, EngineHarness* harness, std::vector<uint64_t>* pins) {
  if (!pins->empty() && Uniform(random, 0, 2) == 0) {
    EXPECT_TRUE(harness->engine().UnpinPrefix(pins->back()).ok());
    pins->pop_back();
    return;
  }
  const std::string prompt = RandomPrompt(random);
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kText;
  spec.text = prompt;
  const absl::StatusOr<uint64_t> pin = harness->engine().PinPrefix(spec);
  harness->CheckInvariants();
  if (pin.ok()) pins->push_back(*pin);
}

// A prefix is copied out, and into the engine again after whatever a flush leaves of it.
void RandomTransfer(Random* random, EngineHarness* harness) {
  const std::string prompt = RandomPrompt(random);
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kText;
  spec.text = prompt;
  const auto image = harness->engine().ReadPrefix(spec);
  harness->CheckInvariants();
  if (!image.ok()) return;
  if (Uniform(random, 0, 1) == 0) {
    EXPECT_TRUE(harness->engine().FlushCache().ok());
  }
  harness->engine()
      .RestorePrefix(std::const_pointer_cast<KvImage>(*image), "", /*pin=*/false)
      .IgnoreError();
  harness->CheckInvariants();
}

void RunWorkload(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const HarnessOptions options = RandomOptions(&random);
  std::vector<Submitted> all(static_cast<size_t>(Uniform(&random, 2, 12)));
  EngineHarness harness(options);
  const int fail_every = Uniform(&random, 0, 2) == 0 ? Uniform(&random, 2, 6) : 0;
  harness.runner().before = [fail_every](int step, const StepPlan&) {
    const bool fails = fail_every != 0 && step % fail_every == fail_every - 1;
    return fails ? absl::InternalError("injected") : absl::OkStatus();
  };
  std::vector<uint64_t> pins;
  for (Submitted& submitted : all) {
    RandomSpec(&random, &submitted);
    submitted.spec.text = submitted.prompt;
    submitted.id = harness.Submit(submitted.spec);
    for (int i = Uniform(&random, 0, 6); i > 0; --i) harness.Step();
    Submitted& victim = all[static_cast<size_t>(Uniform(&random, 0, 99)) % all.size()];
    if (victim.id != 0 && Uniform(&random, 0, 5) == 0) {
      victim.cancelled |= harness.engine().Cancel(victim.id).ok();
    }
    if (Uniform(&random, 0, 2) == 0) {
      const auto hint = static_cast<SessionHint>(Uniform(&random, 0, 3));
      const auto session_id = static_cast<uint64_t>(Uniform(&random, 1, 4));
      EXPECT_TRUE(harness.engine().HintSession(session_id, hint).ok());
    }
    if (Uniform(&random, 0, 4) == 0) RandomPin(&random, &harness, &pins);
    if (Uniform(&random, 0, 4) == 0) RandomTransfer(&random, &harness);
    if (Uniform(&random, 0, 1) == 0) harness.Poll(static_cast<size_t>(Uniform(&random, 1, 4)));
  }
  harness.Poll();
  for (const uint64_t pin : pins) EXPECT_TRUE(harness.engine().UnpinPrefix(pin).ok());
  harness.RunAll();
  for (const Submitted& submitted : all) {
    EXPECT_EQ(harness.Of(submitted.id).num_finished, 1);
    if (submitted.spec.choices == 1) Compare(options, submitted, 0, harness.Of(submitted.id));
    for (uint32_t i = 0; submitted.spec.choices > 1 && i < uint32_t(submitted.spec.choices); ++i) {
      Compare(options, submitted, i, harness.Of(submitted.id, i));
    }
  }
  EXPECT_EQ(harness.engine().Metrics().scheduler.held_blocks_current, 0);
  // The harness compares their sums with the totals when it ends, where there were no pins.
  const EngineMetrics metrics = harness.engine().Metrics();
  EXPECT_EQ(metrics.step.finished_requests_total, metrics.submitted_requests_total);
}

// INLAY_ORACLE_WORKLOADS sets another number.
TEST(OracleTest, AnyScheduleGivesEachRequestTheAnswerThatItHasAlone) {
  const char* wanted = std::getenv("INLAY_ORACLE_WORKLOADS");
  const uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 200;
  for (uint64_t seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) RunWorkload(seed);
  RecordProperty("workloads", static_cast<int>(count));
}

}  // namespace
}  // namespace llm
