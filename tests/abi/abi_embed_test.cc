// llm_embed on a tiny model: among other requests, and misused.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class AbiEmbedTest : public AbiTest {
 protected:
  static llm_embed_request Embed(const std::vector<int32_t>& ids) {
    llm_embed_request request;
    llm_embed_request_init(&request);
    request.ids = ids.data();
    request.num_ids = ids.size();
    return request;
  }
  std::vector<float> ValuesOf(const llm_embed_request& request) {
    std::vector<float> values(512);
    size_t count = 0;
    EXPECT_EQ(llm_embed(engine_, &request, values.data(), values.size(), &count), LLM_OK)
        << llm_last_error();
    values.resize(count);
    return values;
  }
  static std::vector<int32_t> LongText() {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 100; ++i) ids.push_back(3 + i * 31 % 400);
    return ids;
  }
};

TEST_F(AbiEmbedTest, IsBitIdenticalAmongOtherRequests) {
  const std::vector<int32_t> text = LongText();
  Open(LLM_DRIVE_MANUAL);
  const std::vector<float> alone = ValuesOf(Embed(text));
  EXPECT_EQ(alone.size(), 64u);
  EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
  llm_engine_options options = EngineOptions(LLM_DRIVE_THREADS);
  options.max_step_tokens = 13;
  options.num_threads = 2;
  ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  for (int i = 0; i < 4; ++i) {
    llm_request other = Request(text);
    other.max_new_tokens = 50;
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine_, &other, &id), LLM_OK) << llm_last_error();
  }
  EXPECT_EQ(ValuesOf(Embed(text)), alone);
}

TEST_F(AbiEmbedTest, HasLengthOneUnlessSwitchedOff) {
  Open(LLM_DRIVE_THREADS);
  llm_embed_request request = Embed(ids_);
  const std::vector<float> unit = ValuesOf(request);
  request.normalize = LLM_ON;
  EXPECT_EQ(ValuesOf(request), unit);
  request.normalize = LLM_OFF;
  const std::vector<float> raw = ValuesOf(request);
  double dot = 0, unit_squares = 0, raw_squares = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    const double u = static_cast<double>(unit[i]);
    const double r = static_cast<double>(raw[i]);
    dot += u * r;
    unit_squares += u * u;
    raw_squares += r * r;
  }
  EXPECT_NEAR(unit_squares, 1, 1e-6);
  EXPECT_NEAR(dot, std::sqrt(raw_squares), 1e-5 * std::sqrt(raw_squares));
}

TEST_F(AbiEmbedTest, TheLastTokenOfOneTokenIsItsMean) {
  Open(LLM_DRIVE_MANUAL);
  const std::vector<int32_t> one = {7};
  llm_embed_request request = Embed(one);
  const std::vector<float> mean = ValuesOf(request);
  request.pooling = LLM_POOLING_LAST;
  EXPECT_EQ(ValuesOf(request), mean);
  llm_embed_request two = Embed(ids_);
  const std::vector<float> mean_of_five = ValuesOf(two);
  two.pooling = LLM_POOLING_LAST;
  EXPECT_NE(ValuesOf(two), mean_of_five);
}

TEST_F(AbiEmbedTest, TextIsTokenizedAsAPromptIs) {
  Open(LLM_DRIVE_MANUAL);
  const std::string text = "hello world, hello again";
  size_t count = 0;
  std::vector<int32_t> ids(64);
  ASSERT_EQ(llm_tokenize(model_, text.data(), text.size(), LLM_TEXT_ADD_SPECIAL, ids.data(),
                         ids.size(), &count),
            LLM_OK);
  ids.resize(count);
  llm_embed_request request;
  llm_embed_request_init(&request);
  request.text = {text.data(), text.size()};
  EXPECT_EQ(ValuesOf(request), ValuesOf(Embed(ids)));
}

TEST_F(AbiEmbedTest, WritesNoMoreThanTheCapacity) {
  Open(LLM_DRIVE_MANUAL);
  const llm_embed_request request = Embed(ids_);
  size_t count = 0;
  EXPECT_EQ(llm_embed(engine_, &request, nullptr, 0, &count), LLM_OK) << llm_last_error();
  EXPECT_EQ(count, 64u);
  std::vector<float> values(4, -7.0f);
  EXPECT_EQ(llm_embed(engine_, &request, values.data(), 3, &count), LLM_OK);
  EXPECT_EQ(count, 64u);
  EXPECT_EQ(values[3], -7.0f);
}

TEST_F(AbiEmbedTest, WrongFieldsAreNamed) {
  Open(LLM_DRIVE_MANUAL);
  const auto refused = [&](auto change, llm_status status, const char* names) {
    llm_embed_request request = Embed(ids_);
    change(request);
    size_t count = 77;
    EXPECT_EQ(llm_embed(engine_, &request, nullptr, 0, &count), status) << names;
    EXPECT_THAT(llm_last_error(), HasSubstr(names));
    EXPECT_EQ(count, 77u);
  };
  refused([](llm_embed_request& e) { e.num_ids = 0; }, LLM_INVALID_ARGUMENT, "ids");
  refused([](llm_embed_request& e) { e.text = Str("two"); }, LLM_INVALID_ARGUMENT, "exactly one");
  refused([](llm_embed_request& e) { e.ids = nullptr; }, LLM_INVALID_ARGUMENT, "ids");
  refused([](llm_embed_request& e) { e.pooling = 3; }, LLM_INVALID_ARGUMENT, "pooling");
  refused([](llm_embed_request& e) { e.normalize = 3; }, LLM_INVALID_ARGUMENT, "normalize");
  refused([](llm_embed_request& e) { e.parse_special = 3; }, LLM_INVALID_ARGUMENT, "parse_special");
  refused([](llm_embed_request& e) { e.reserved = 1; }, LLM_UNIMPLEMENTED, "reserved");
  refused([](llm_embed_request& e) { e.struct_size = 0; }, LLM_INVALID_ARGUMENT, "struct_size");
  const llm_embed_request request = Embed(ids_);
  size_t count = 0;
  EXPECT_EQ(llm_embed(nullptr, &request, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_embed(engine_, nullptr, nullptr, 0, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_embed(engine_, &request, nullptr, 3, &count), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_embed(engine_, &request, nullptr, 0, nullptr), LLM_INVALID_ARGUMENT);
}

// Where waiting could never end.
struct Reentry {
  llm_engine* engine = nullptr;
  llm_status embed = LLM_OK;

  static int32_t Call(void* user_data, const llm_score_row* row) {
    Reentry& reentry = *static_cast<Reentry*>(user_data);
    llm_embed_request request;
    llm_embed_request_init(&request);
    request.ids = &row->id;
    request.num_ids = 1;
    size_t count = 0;
    reentry.embed = llm_embed(reentry.engine, &request, nullptr, 0, &count);
    return 0;
  }
};

TEST_F(AbiEmbedTest, InsideAStepItIsRefused) {
  for (const uint32_t drive : {LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS}) {
    Open(drive);
    Reentry reentry;
    reentry.engine = engine_;
    llm_score_request score;
    llm_score_request_init(&score);
    score.ids = ids_.data();
    score.num_ids = ids_.size();
    score.on_row = &Reentry::Call;
    score.user_data = &reentry;
    size_t count = 0;
    EXPECT_EQ(llm_score(engine_, &score, nullptr, 0, &count), LLM_OK) << llm_last_error();
    EXPECT_EQ(reentry.embed, LLM_FAILED_PRECONDITION);
    EXPECT_EQ(llm_engine_close(engine_), LLM_OK);
    engine_ = nullptr;
  }
}

TEST_F(AbiEmbedTest, AfterShutdownItIsRefused) {
  Open(LLM_DRIVE_THREADS);
  ASSERT_EQ(llm_engine_shutdown(engine_, -1), LLM_OK);
  const llm_embed_request request = Embed(ids_);
  size_t count = 0;
  EXPECT_EQ(llm_embed(engine_, &request, nullptr, 0, &count), LLM_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace llm
