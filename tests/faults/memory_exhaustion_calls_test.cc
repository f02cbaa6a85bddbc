// Each call alone: it fails cleanly or gives what it gives otherwise, and its engine serves on.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "tests/faults/memory_exhaustion.h"

namespace llm {
namespace {

constexpr char kText[] = "Hello, hello <|eos|> caf\xc3\xa9 \xff";
constexpr char kChat[] =
    R"([{"role": "system", "content": "short"}, {"role": "user", "content": "caf\u00e9"}])";

// What a call gave, where that is the same each time. Never grows: faults are on.
struct Output {
  char bytes[16384] = {};
  size_t size = 0;

  void Add(const void* data, size_t count) {
    count = std::min(count, sizeof(bytes) - size);
    std::memcpy(bytes + size, data, count);
    size += count;
  }
};

llm_status Tokenize(llm_model* model, llm_engine*, Output* output) {
  int32_t ids[64];
  size_t count = 0;
  const llm_status status =
      llm_tokenize(model, kText, sizeof(kText) - 1, LLM_TEXT_ADD_SPECIAL | LLM_TEXT_PARSE_SPECIAL,
                   ids, 64, &count);
  if (status == LLM_OK) output->Add(ids, count * sizeof(ids[0]));
  return status;
}

llm_status Detokenize(llm_model* model, llm_engine*, Output* output) {
  char text[256];
  size_t size = 0;
  const llm_status status = llm_detokenize(model, kTinyPrompt, std::size(kTinyPrompt),
                                           LLM_TEXT_RENDER_SPECIAL, text, sizeof(text), &size);
  if (status == LLM_OK) output->Add(text, size);
  return status;
}

llm_status RenderChat(llm_model* model, llm_engine*, Output* output) {
  char text[1024];
  size_t size = 0;
  const llm_status status =
      llm_chat_render(model, kChat, sizeof(kChat) - 1, text, sizeof(text), &size);
  if (status == LLM_OK) output->Add(text, size);
  return status;
}

llm_status Score(llm_model*, llm_engine* engine, Output* output) {
  llm_score_request request;
  llm_score_request_init(&request);
  request.text = {kText, 12};
  request.on_row = [](void*, const llm_score_row*) { return int32_t{0}; };
  float logprobs[32];
  size_t count = 0;
  const llm_status status = llm_score(engine, &request, logprobs, 32, &count);
  if (status == LLM_OK) output->Add(logprobs, count * sizeof(logprobs[0]));
  return status;
}

llm_status Embed(llm_model*, llm_engine* engine, Output* output) {
  llm_embed_request request;
  llm_embed_request_init(&request);
  request.text = {kText, 12};
  float values[256];
  size_t count = 0;
  const llm_status status = llm_embed(engine, &request, values, 256, &count);
  if (status == LLM_OK) output->Add(values, std::min<size_t>(count, 256) * sizeof(values[0]));
  return status;
}

llm_status PinAndUnpin(llm_model*, llm_engine* engine, Output*) {
  int32_t ids[40];
  for (int32_t i = 0; i < 40; ++i) ids[i] = i;
  llm_prefix prefix;
  llm_prefix_init(&prefix);
  prefix.prompt_ids = ids;
  prefix.num_prompt_ids = std::size(ids);
  prefix.cache_salt = {"salt", 4};
  llm_pin_id pin = 0;
  const llm_status status = llm_prefix_pin(engine, &prefix, &pin);
  return status == LLM_OK ? llm_prefix_unpin(engine, pin) : status;
}

llm_status HintSessions(llm_model*, llm_engine* engine, Output*) {
  const llm_status status = llm_session_hint(engine, 7, LLM_HINT_TOOL_CALL);
  return status == LLM_OK ? llm_session_close(engine, 7) : status;
}

llm_status ReadCounters(llm_model*, llm_engine* engine, Output*) {
  llm_metrics_snapshot metrics;
  llm_metrics_snapshot_init(&metrics);
  llm_status status = llm_metrics(engine, &metrics);
  if (status != LLM_OK) return status;
  llm_histogram histogram;
  llm_histogram_init(&histogram);
  status = llm_metrics_histogram(engine, LLM_HISTOGRAM_TTFT, &histogram);
  if (status != LLM_OK) return status;
  llm_step_record steps[4];
  llm_request_record records[4];
  uint64_t cursor = 0;
  size_t count = 0;
  status = llm_step_records_read(engine, &cursor, steps, sizeof(steps[0]), 4, &count);
  if (status != LLM_OK) return status;
  cursor = 0;
  status = llm_request_records_read(engine, &cursor, records, sizeof(records[0]), 4, &count);
  if (status != LLM_OK) return status;
  char text[64];
  return llm_metrics_text(engine, text, sizeof(text), &count);
}

// On a queue of its own, which is closed at the end whatever happened.
llm_status Ask(llm_engine* engine, llm_request* request, Output* output) {
  llm_queue* queue = nullptr;
  llm_status status = llm_queue_create(&queue);
  if (status != LLM_OK) return status;
  int32_t fd = -1;
  llm_queue_fd(queue, &fd);
  request->queue = queue;
  llm_request_id id = 0;
  status = llm_submit(engine, request, &id);
  bool finished = status != LLM_OK;
  llm_status ended = status;
  for (int round = 0; !finished && round < 100000; ++round) {
    // Refused where the engine has its own threads: then there is something to wait for.
    const int64_t wait_ns = llm_engine_step(engine, nullptr) == LLM_OK ? 0 : 1000000;
    llm_event events[4];
    size_t count = 0;
    if (llm_poll(queue, events, sizeof(events[0]), 4, wait_ns, &count) != LLM_OK) continue;
    for (size_t i = 0; i < count; ++i) {
      finished |= events[i].type == LLM_EVENT_FINISHED;
      if (events[i].type == LLM_EVENT_FINISHED) ended = events[i].status;
      if (events[i].choice == 0) output->Add(events[i].token_ids, 4 * events[i].num_tokens);
    }
  }
  llm_queue_close(queue);
  return finished ? ended : LLM_UNKNOWN;
}

llm_status AskForChoices(llm_model*, llm_engine* engine, Output* output) {
  llm_request request = TinyRequest();
  request.choices = 3;
  request.temperature = 1;
  request.seed = 5;
  request.num_logprobs = 2;
  request.num_prompt_logprobs = 2;
  return Ask(engine, &request, output);
}

llm_status AskInASession(llm_model*, llm_engine* engine, Output* output) {
  llm_request request = TinyRequest();
  request.prompt_ids = nullptr;
  request.num_prompt_ids = 0;
  request.chat = {kChat, sizeof(kChat) - 1};
  request.session_id = 9;
  request.cache_salt = {"salt", 4};
  return Ask(engine, &request, output);
}

llm_status ListHeader(llm_model*, llm_engine*, Output* output) {
  llm_model_options options;
  llm_model_options_init(&options);
  options.header_only = LLM_ON;
  llm_model* model = nullptr;
  const std::string& path = TinyModelPath();
  llm_status status = llm_model_open(path.data(), path.size(), &options, &model);
  if (status != LLM_OK) return status;
  llm_tensor_info tensor;
  llm_tensor_info_init(&tensor);
  for (uint64_t i = 0; llm_model_tensor(model, i, &tensor) == LLM_OK; ++i) {
    output->Add(tensor.name.data, tensor.name.size);
  }
  llm_string key, value;
  for (uint64_t i = 0; llm_model_metadata(model, i, &key, &value) == LLM_OK; ++i) {
    output->Add(key.data, key.size);
  }
  llm_model_release(model);
  return LLM_OK;
}

llm_status Plan(llm_model*, llm_engine*, Output* output) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  const std::string& path = TinyModelPath();
  source.path = {path.data(), path.size()};
  const llm_engine_options options = TinyEngineOptions(LLM_DRIVE_MANUAL);
  llm_memory_plan plan;
  llm_memory_plan_init(&plan);
  const llm_status status = llm_plan(&source, nullptr, &options, &plan);
  // A table that could not be shrunk is larger, and is said to be.
  plan.tokenizer_bytes = 0;
  if (status == LLM_OK) output->Add(&plan, sizeof(plan));
  return status;
}

llm_status OpenFromDescriptor(llm_model*, llm_engine*, Output*) {
  const int fd = open(TinyModelPath().c_str(), O_RDONLY | O_CLOEXEC);
  llm_model* model = nullptr;
  const llm_status status = llm_model_open_fd(fd, 0, 0, nullptr, &model);
  close(fd);
  llm_model_release(model);
  return status;
}

llm_status SaveAndOpenPack(llm_model*, llm_engine*, Output*) {
  char path[64];
  const int size =
      std::snprintf(path, sizeof path, "/tmp/inlay_faults_%d.llmpack", static_cast<int>(getpid()));
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = {TinyModelPath().data(), TinyModelPath().size()};
  llm_status status = llm_model_save(&source, nullptr, path, static_cast<size_t>(size));
  for (const uint32_t mapped : {LLM_OFF, LLM_ON}) {
    if (status != LLM_OK) break;
    llm_model_options options;
    llm_model_options_init(&options);
    options.map_pack = mapped;
    options.verify_pack = LLM_ON;
    llm_model* model = nullptr;
    status = llm_model_open(path, static_cast<size_t>(size), &options, &model);
    llm_model_release(model);
  }
  unlink(path);
  return status;
}

// Closing never fails, and ends what was submitted once. LLM_UNKNOWN: it did not.
llm_status CloseWithWork(llm_model* model, llm_engine*, Output*) {
  for (const uint32_t drive : {LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS}) {
    llm_engine* engine = nullptr;
    const llm_status opened = OpenTinyEngine(model, drive, &engine);
    if (opened != LLM_OK) return opened;
    int num_finished = 0;
    int num_submitted = 0;
    llm_request request = TinyRequest();
    request.max_new_tokens = 60;
    request.user_data = &num_finished;
    request.on_event = [](void* user_data, const llm_event* event) {
      *static_cast<int*>(user_data) += event->type == LLM_EVENT_FINISHED ? 1 : 0;
    };
    for (uint32_t choices = 1; choices < 3; ++choices) {
      request.choices = choices;
      llm_request_id id = 0;
      num_submitted += llm_submit(engine, &request, &id) == LLM_OK ? 1 : 0;
      llm_engine_step(engine, nullptr);
    }
    const llm_status closed = llm_engine_close(engine);
    EXPECT_EQ(closed, LLM_OK) << llm_last_error();
    EXPECT_EQ(num_finished, num_submitted) << "drive " << drive;
    if (closed != LLM_OK || num_finished != num_submitted) return LLM_UNKNOWN;
  }
  return LLM_OK;
}

struct Call {
  const char* name;
  llm_status (*run)(llm_model* model, llm_engine* engine, Output* output);
  bool uses_engine = true;
};

class CallsTest : public MemoryExhaustionTest, public testing::WithParamInterface<Call> {
 protected:
  static void RunCall(uint32_t drive, int64_t first, const Output& expected) {
    llm_engine* engine = nullptr;
    if (GetParam().uses_engine) {
      ASSERT_EQ(OpenTinyEngine(model_, drive, &engine), LLM_OK);
    }
    Output output;
    llm_status status = LLM_UNKNOWN;
    {
      const ScopedAllocationFault fault(first, 1);
      status = GetParam().run(model_, engine, &output);
    }
    EXPECT_TRUE(status == LLM_OK || CleanFailure(status)) << status << llm_last_error();
    if (status == LLM_OK) {
      EXPECT_EQ(output.size, expected.size);
      EXPECT_EQ(std::memcmp(output.bytes, expected.bytes, expected.size), 0);
    }
    if (engine != nullptr) ExpectServes(engine, drive);
    EXPECT_EQ(llm_engine_close(engine), LLM_OK) << llm_last_error();
  }
};

TEST_P(CallsTest, FailsCleanlyOrWorks) {
  for (const uint32_t drive : {LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS}) {
    llm_engine* engine = nullptr;
    ASSERT_EQ(OpenTinyEngine(model_, drive, &engine), LLM_OK);
    Output expected;
    ASSERT_EQ(GetParam().run(model_, engine, &expected), LLM_OK) << llm_last_error();
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
    ForEachAllocation(GetParam().name, [&](int64_t first) { RunCall(drive, first, expected); });
    if (!GetParam().uses_engine) break;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, CallsTest,
    testing::Values(Call{"Tokenize", Tokenize, false}, Call{"Detokenize", Detokenize, false},
                    Call{"RenderChat", RenderChat, false}, Call{"ListHeader", ListHeader, false},
                    Call{"Plan", Plan, false}, Call{"OpenFd", OpenFromDescriptor, false},
                    Call{"SaveAndOpenPack", SaveAndOpenPack, false},
                    Call{"CloseWithWork", CloseWithWork, false}, Call{"Score", Score},
                    Call{"Embed", Embed}, Call{"PinAndUnpin", PinAndUnpin},
                    Call{"HintSessions", HintSessions}, Call{"ReadCounters", ReadCounters},
                    Call{"AskForChoices", AskForChoices}, Call{"AskInASession", AskInASession}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace llm
