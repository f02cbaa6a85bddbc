// Damaged model files from open to the last token: every one is refused with a reason, or serves
// its request; the process and the engine live on.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "tests/abi/hostile_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFiles[] = {"llama_h64-Q4_1.gguf", "llama_h64-F32.gguf",
                                  "gemma3_text-Q4_1.gguf"};

// Flips of each kind and file; a long run is asked for by the environment.
int NumFlips() {
  const char* flips = std::getenv("INLAY_HOSTILE_FLIPS");
  return flips != nullptr ? std::atoi(flips) : 60;
}

// Where the tensors' data begins, near enough: behind the last name of a tensor.
size_t HeaderBytes(const std::string& file) { return file.rfind(".weight") + 64; }

// What holds for any file: a reason for a refusal, one FINISHED for an accepted request, and never
// an unhealthy engine.
void CheckContract(const HostileRun& run) {
  if (run.open != LLM_OK || run.engine != LLM_OK || run.submit != LLM_OK) {
    EXPECT_NE(run.message, "");
    const llm_status status = run.open != LLM_OK     ? run.open
                              : run.engine != LLM_OK ? run.engine
                                                     : run.submit;
    EXPECT_THAT(status, testing::AnyOf(LLM_INVALID_ARGUMENT, LLM_UNIMPLEMENTED, LLM_NOT_FOUND,
                                       LLM_RESOURCE_EXHAUSTED))
        << run.message;
    return;
  }
  EXPECT_TRUE(run.healthy) << run.message;
  EXPECT_EQ(run.num_finished, 1);
  if (run.finish == LLM_OK) return;
  EXPECT_EQ(run.finish, LLM_INTERNAL);
  EXPECT_THAT(run.message, HasSubstr("finite"));
}

class HostileModelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    whole_ = ReadTestFile(GetParam());
    ASSERT_FALSE(whole_.empty());
  }
  // Flips one bit in [begin, end), runs, and puts it back.
  void Flip(size_t begin, size_t end, unsigned seed) {
    std::mt19937 random(seed);
    std::string bytes = whole_;
    const size_t at = std::uniform_int_distribution<size_t>(begin, end - 1)(random);
    const unsigned bit = random() % 8;
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1u << bit));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": bit " + std::to_string(bit) + " of byte " +
                 std::to_string(at));
    file_.Write(bytes);
    CheckContract(file_.Run(seed % 2 == 0 ? "reference" : ""));
  }

  HostileFile file_;
  std::string whole_;
};

TEST_P(HostileModelTest, TheWholeFileServesItsRequest) {
  file_.Write(whole_);
  const HostileRun run = file_.Run("");
  EXPECT_TRUE(run.survived()) << run.message;
  EXPECT_EQ(run.finish, LLM_OK) << run.message;
}

TEST_P(HostileModelTest, ATruncatedFileIsRefusedWithAReason) {
  const size_t header = HeaderBytes(whole_);
  std::vector<size_t> sizes;
  for (size_t size = 0; size < 64; ++size) sizes.push_back(size);
  for (size_t size = 64; size < header; size += 1 + header / 150) sizes.push_back(size);
  for (size_t part = 1; part < 20; ++part) sizes.push_back(whole_.size() * part / 20);
  sizes.push_back(whole_.size() - 64);
  for (const size_t size : sizes) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    file_.Write(whole_.substr(0, size));
    const HostileRun run = file_.Run("");
    EXPECT_NE(run.open, LLM_OK);
    CheckContract(run);
  }
}

TEST_P(HostileModelTest, AFlippedBitOfTheHeaderIsRefusedOrServed) {
  const size_t header = HeaderBytes(whole_);
  for (int i = 0; i < NumFlips(); ++i) Flip(0, header, static_cast<unsigned>(i));
}

// Sizes and types are few bytes among many tokens: here they are hit more often.
TEST_P(HostileModelTest, AFlippedBitOfAKeyIsRefusedOrServed) {
  const size_t tokens = whole_.find("tokenizer.ggml.tokens");
  const size_t tail = whole_.find("tokenizer.ggml.bos_token_id");
  ASSERT_NE(tokens, std::string::npos);
  for (int i = 0; i < NumFlips(); ++i) {
    Flip(0, tokens + 64, static_cast<unsigned>(1000000 + i));
    Flip(tail, HeaderBytes(whole_), static_cast<unsigned>(2000000 + i));
  }
}

TEST_P(HostileModelTest, AFlippedBitOfAWeightEndsAtMostTheRequest) {
  for (int i = 0; i < NumFlips() / 4; ++i) {
    Flip(HeaderBytes(whole_), whole_.size(), static_cast<unsigned>(3000000 + i));
  }
}

TEST_P(HostileModelTest, WeightsThatAreNotNumbersEndTheRequestAlone) {
  std::string bytes = whole_;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(HeaderBytes(whole_) + 64), bytes.end(),
            '\xff');
  file_.Write(bytes);
  for (const char* kernels : {"reference", ""}) {
    const HostileRun run = file_.Run(kernels);
    ASSERT_TRUE(run.survived()) << run.message;
    EXPECT_EQ(run.finish, LLM_INTERNAL);
    CheckContract(run);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, HostileModelTest, testing::ValuesIn(kFiles), [](const auto& param) {
  std::string name = param.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace llm
