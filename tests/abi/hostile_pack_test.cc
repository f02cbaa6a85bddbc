// Packs of any content: refused with what is wrong, or served. The checksum stops damage; a hostile
// writer has made it match, so everything behind it is checked as well.
#include <gmock/gmock.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <random>

#include "src/base/xxh64.h"
#include "src/loader/pack_format.h"
#include "tests/abi/hostile_file.h"
#include "tests/abi/pack_file.h"

namespace llm {
namespace {

using ::testing::HasSubstr;

class HostilePackTest : public testing::Test {
 protected:
  void SetUp() override {
    PackFolder folder;
    whole_ = ReadWhole(folder.Pack(TestModel("llama_h64-Q4_1.gguf"), ""));
    ASSERT_GT(whole_.size(), kPackAlignment);
  }
  static PackHeader HeaderOf(const std::string& bytes) {
    PackHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return header;
  }
  static void SetHeader(const PackHeader& header, std::string* bytes) {
    std::memcpy(bytes->data(), &header, sizeof(header));
  }
  // Makes the checksum match what the header now says.
  static void Seal(std::string* bytes) {
    PackHeader header = HeaderOf(*bytes);
    header.checksum = 0;
    SetHeader(header, bytes);
    header.checksum =
        Checksum(bytes->data(), std::min<size_t>(bytes->size(), header.weights_offset));
    SetHeader(header, bytes);
  }
  static size_t IndexOffset(const std::string& bytes) {
    return (sizeof(PackHeader) + HeaderOf(bytes).gguf_bytes + 7) / 8 * 8;
  }
  HostileRun RunBytes(const std::string& bytes) {
    file_.Write(bytes);
    return file_.Run("");
  }
  void ExpectRefused(const std::string& bytes, llm_status code, const std::string& message) {
    const HostileRun run = RunBytes(bytes);
    EXPECT_EQ(run.open, code) << run.message;
    EXPECT_THAT(run.message, HasSubstr(message));
  }
  void ExpectHeaderRefused(const std::function<void(PackHeader*)>& change, llm_status code,
                           const std::string& message) {
    std::string bytes = whole_;
    PackHeader header = HeaderOf(bytes);
    change(&header);
    SetHeader(header, &bytes);
    Seal(&bytes);
    ExpectRefused(bytes, code, message);
  }
  void ExpectEntryRefused(size_t index, const std::function<void(PackTensor*)>& change,
                          const std::string& message) {
    std::string bytes = whole_;
    char* at = bytes.data() + IndexOffset(bytes) + index * sizeof(PackTensor);
    PackTensor entry;
    std::memcpy(&entry, at, sizeof(entry));
    change(&entry);
    std::memcpy(at, &entry, sizeof(entry));
    Seal(&bytes);
    ExpectRefused(bytes, LLM_INVALID_ARGUMENT, message);
  }

  HostileFile file_;
  std::string whole_;
};

TEST_F(HostilePackTest, TheWholePackServesItsRequest) {
  const HostileRun run = RunBytes(whole_);
  EXPECT_TRUE(run.survived()) << run.message;
  EXPECT_EQ(run.finish, LLM_OK) << run.message;
}

TEST_F(HostilePackTest, ATruncatedPackIsRefusedWithAReason) {
  for (size_t size = 8; size < whole_.size(); size += 1 + whole_.size() / 200) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    ExpectRefused(whole_.substr(0, size), LLM_DATA_LOSS, "pack");
  }
  ExpectRefused(whole_ + "x", LLM_DATA_LOSS, "it is cut or grown");
  ExpectRefused(whole_.substr(0, 4), LLM_INVALID_ARGUMENT, "gguf");
}

TEST_F(HostilePackTest, AFlippedBitBeforeTheWeightsIsFound) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole_;
    const size_t at = 16 + random() % (kPackAlignment - 16);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    SCOPED_TRACE("byte " + std::to_string(at));
    const HostileRun run = RunBytes(bytes);
    EXPECT_NE(run.open, LLM_OK);
    EXPECT_THAT(run.message, HasSubstr("header"));
  }
}

TEST_F(HostilePackTest, EveryHeaderFieldIsChecked) {
  ExpectHeaderRefused([](PackHeader* h) { h->version = 2; }, LLM_FAILED_PRECONDITION,
                      "format version 2, this library reads 1");
  ExpectHeaderRefused([](PackHeader* h) { h->reserved = 1; }, LLM_INVALID_ARGUMENT, "reserved 1");
  ExpectHeaderRefused([](PackHeader* h) { std::strcpy(h->numerics_id, "other:tiles9"); },
                      LLM_INVALID_ARGUMENT, "numerics_id");
  ExpectHeaderRefused([](PackHeader* h) { std::strncpy(h->numerics_id, "other:tiles9", 64); },
                      LLM_FAILED_PRECONDITION, "made for kernels other:tiles9");
  ExpectHeaderRefused([](PackHeader* h) { std::memset(h->numerics_id, 0, 64); },
                      LLM_INVALID_ARGUMENT, "numerics_id");
  ExpectHeaderRefused([](PackHeader* h) { h->file_bytes += 64; }, LLM_DATA_LOSS, "cut or grown");
  ExpectHeaderRefused([](PackHeader* h) { h->source_bytes = 5; }, LLM_INVALID_ARGUMENT,
                      "lie outside the file");
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{5000}, UINT64_MAX}) {
    ExpectHeaderRefused([&](PackHeader* h) { h->gguf_bytes = value; }, LLM_INVALID_ARGUMENT, "");
    ExpectHeaderRefused([&](PackHeader* h) { h->num_tensors = value; }, LLM_INVALID_ARGUMENT,
                        "num_tensors");
    ExpectHeaderRefused([&](PackHeader* h) { h->weights_offset = value; }, LLM_INVALID_ARGUMENT,
                        "weights_offset");
    ExpectHeaderRefused([&](PackHeader* h) { h->weights_bytes = value; }, LLM_INVALID_ARGUMENT,
                        "weights_bytes");
  }
  ExpectHeaderRefused([](PackHeader* h) { h->gguf_bytes += 8; }, LLM_INVALID_ARGUMENT, "");
}

TEST_F(HostilePackTest, EveryIndexFieldIsChecked) {
  for (const size_t index : {size_t{0}, size_t{3}, size_t{20}}) {
    ExpectEntryRefused(
        index, [](PackTensor* t) { t->offset += 32; }, "no multiple of 64");
    ExpectEntryRefused(
        index, [](PackTensor* t) { t->offset = UINT64_MAX - 63; }, "lie outside");
    ExpectEntryRefused(
        index, [](PackTensor* t) { t->bytes = UINT64_MAX; }, "lie outside");
    ExpectEntryRefused(
        index, [](PackTensor* t) { t->bytes -= 1; }, "of the weights, expected");
  }
  ExpectEntryRefused(
      0, [](PackTensor* t) { t->offset += 64; }, "tensor ");  // over the next one
}

// The GGUF header within is checked as that of a file is; here what only a pack can get wrong.
TEST_F(HostilePackTest, AnotherTypeOrShapeWithinIsRefused) {
  const std::string name = "blk.0.attn_q.weight";
  const size_t record = whole_.find(name) + name.size();
  std::string bytes = whole_;
  bytes[record + 4 + 16] = 2;  // the type behind rank and two dimensions: Q4_0
  Seal(&bytes);
  ExpectRefused(bytes, LLM_INVALID_ARGUMENT, "tensor blk.0.attn_q.weight: ");
  bytes = whole_;
  bytes[record + 4] = 32;  // columns
  Seal(&bytes);
  ExpectRefused(bytes, LLM_INVALID_ARGUMENT, "tensor blk.0.attn_q.weight: expected [");
}

TEST_F(HostilePackTest, AFlippedBitOfASealedHeaderIsRefusedOrServed) {
  std::mt19937 random(2);
  for (int i = 0; i < 150; ++i) {
    std::string bytes = whole_;
    const size_t at = random() % (IndexOffset(bytes) + 21 * sizeof(PackTensor));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    if (HeaderOf(bytes).weights_offset <= bytes.size()) Seal(&bytes);
    SCOPED_TRACE("byte " + std::to_string(at));
    const HostileRun run = RunBytes(bytes);
    if (run.open != LLM_OK) {
      EXPECT_NE(run.message, "");
    } else {
      EXPECT_TRUE(run.healthy) << run.message;
      EXPECT_TRUE(run.submit != LLM_OK || run.num_finished == 1);
    }
  }
}

TEST_F(HostilePackTest, VerifyNamesTheTensorThatDiffers) {
  llm_model_options options;
  llm_model_options_init(&options);
  options.verify_pack = LLM_ON;
  std::mt19937 random(3);
  const size_t begin = HeaderOf(whole_).weights_offset;
  for (int i = 0; i < 50; ++i) {
    std::string bytes = whole_;
    if (i > 0) {
      const size_t at = begin + random() % (bytes.size() - begin);
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
    llm_model* model = nullptr;
    const llm_status status = llm_model_open_memory(bytes.data(), bytes.size(), &options, &model);
    EXPECT_EQ(status, i == 0 ? LLM_OK : LLM_DATA_LOSS);
    EXPECT_TRUE(i == 0 || std::strstr(llm_last_error(), ".weight: its ") != nullptr);
    llm_model_release(model);
  }
  const std::string model_file = ReadWhole(TestModel("llama_h64-Q4_1.gguf"));
  llm_model* model = nullptr;
  EXPECT_EQ(llm_model_open_memory(model_file.data(), model_file.size(), &options, &model),
            LLM_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace llm
