// llm_model_tensor, llm_model_metadata and header_only. Expected values were read out of the file
// by a GGUF reader of its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstddef>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kDataBegin = 13248, kFileBytes = 620736;

std::string ToString(llm_string text) { return {text.data, text.size}; }

class AbiListingTest : public AbiTest {
 protected:
  void SetUp() override {
    llm_model_options_init(&options_);
    options_.header_only = LLM_ON;
    ASSERT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model_), LLM_OK)
        << llm_last_error();
  }
  llm_tensor_info Tensor(uint64_t index) {
    llm_tensor_info info;
    llm_tensor_info_init(&info);
    EXPECT_EQ(llm_model_tensor(model_, index, &info), LLM_OK) << llm_last_error();
    return info;
  }
  // "key = value" at `index`.
  std::string Metadata(uint64_t index) {
    llm_string key, value;
    EXPECT_EQ(llm_model_metadata(model_, index, &key, &value), LLM_OK) << llm_last_error();
    return ToString(key) + " = " + ToString(value);
  }

  const std::string path_ = std::string(INLAY_TEST_DATA) + "/gguf/llama_h64-F32.gguf";
  llm_model_options options_;
};

TEST_F(AbiListingTest, TensorsAreListedWithTypeShapeAndPlace) {
  const llm_tensor_info embedding = Tensor(0);
  EXPECT_EQ(ToString(embedding.name), "token_embd.weight");
  EXPECT_EQ(ToString(embedding.type), "F32");
  EXPECT_EQ(embedding.num_dims, 2u);
  EXPECT_THAT(embedding.shape, ElementsAre(512, 64, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(embedding.file_offset, kDataBegin);
  EXPECT_EQ(embedding.size_bytes, 512u * 64 * 4);
  const llm_tensor_info norm = Tensor(1);
  EXPECT_EQ(norm.num_dims, 1u);
  EXPECT_EQ(norm.file_offset, kDataBegin + 131072);
  const llm_tensor_info last = Tensor(20);
  EXPECT_EQ(ToString(last.name), "blk.1.ffn_down.weight");
  EXPECT_THAT(last.shape, ElementsAre(64, 160, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(last.file_offset + last.size_bytes, kFileBytes);
}

TEST_F(AbiListingTest, MetadataIsListedAsText) {
  EXPECT_EQ(Metadata(0), "general.architecture = llama");
  EXPECT_EQ(Metadata(7), "llama.context_length = 512");
  EXPECT_EQ(Metadata(12), "llama.attention.layer_norm_rms_epsilon = 1e-05");
  EXPECT_EQ(Metadata(18), "tokenizer.ggml.tokens = 512 strings");
  EXPECT_EQ(Metadata(19), "tokenizer.ggml.token_type = 512 integers");
  EXPECT_EQ(Metadata(24), "tokenizer.ggml.add_bos_token = false");
  EXPECT_THAT(Metadata(25), HasSubstr("tokenizer.chat_template = {% for message in messages %}"));
}

TEST_F(AbiListingTest, AnOpenModelListsTheSameAsItsHeader) {
  llm_model* header = model_;
  ASSERT_EQ(llm_model_open(path_.data(), path_.size(), nullptr, &model_), LLM_OK);
  llm_model_info info, of_header;
  llm_model_info_init(&info);
  llm_model_info_init(&of_header);
  ASSERT_EQ(llm_model_get_info(model_, &info), LLM_OK);
  ASSERT_EQ(llm_model_get_info(header, &of_header), LLM_OK);
  EXPECT_EQ(info.num_tensors, 21u);
  EXPECT_EQ(info.num_metadata, 26u);
  EXPECT_EQ(info.num_tensors, of_header.num_tensors);
  EXPECT_EQ(info.num_metadata, of_header.num_metadata);
  EXPECT_EQ(info.weights_bytes, of_header.weights_bytes);
  for (uint64_t i = 0; i < info.num_tensors; ++i) {
    const llm_tensor_info tensor = Tensor(i);
    std::swap(model_, header);
    const llm_tensor_info other = Tensor(i);
    std::swap(model_, header);
    EXPECT_EQ(ToString(tensor.name), ToString(other.name));
    EXPECT_EQ(tensor.file_offset, other.file_offset);
  }
  llm_model_release(header);
}

TEST_F(AbiListingTest, AnIndexBeyondTheLastIsOutOfRangeAndChangesNothing) {
  for (const uint64_t index : {uint64_t{26}, UINT64_MAX}) {
    llm_tensor_info info;
    llm_tensor_info_init(&info);
    info.size_bytes = 7;
    EXPECT_EQ(llm_model_tensor(model_, index, &info), LLM_OUT_OF_RANGE);
    EXPECT_THAT(llm_last_error(), HasSubstr("of 21 tensors"));
    EXPECT_EQ(info.size_bytes, 7u);
    llm_string key = Str("untouched"), value = key;
    EXPECT_EQ(llm_model_metadata(model_, index, &key, &value), LLM_OUT_OF_RANGE);
    EXPECT_EQ(ToString(key) + ToString(value), "untoucheduntouched");
  }
  llm_string text;
  EXPECT_EQ(llm_model_tensor(model_, 0, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_tensor(nullptr, 0, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_metadata(model_, 0, nullptr, &text), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_model_metadata(model_, 0, &text, nullptr), LLM_INVALID_ARGUMENT);
}

TEST_F(AbiListingTest, AnOlderCallersTensorInfoIsFilledAsFarAsItGoes) {
  llm_tensor_info info;
  llm_tensor_info_init(&info);
  info.struct_size = offsetof(llm_tensor_info, file_offset);
  info.file_offset = 7;
  ASSERT_EQ(llm_model_tensor(model_, 0, &info), LLM_OK) << llm_last_error();
  EXPECT_EQ(info.shape[0], 512u);
  EXPECT_EQ(info.file_offset, 7u);
}

TEST_F(AbiListingTest, AHeaderOnlyModelTokenizesButNoEngineServesIt) {
  int32_t ids[8];
  size_t count = 0;
  EXPECT_EQ(llm_tokenize(model_, "the", 3, 0, ids, 8, &count), LLM_OK) << llm_last_error();
  EXPECT_GT(count, 0u);
  EXPECT_EQ(llm_engine_open(model_, nullptr, &engine_), LLM_FAILED_PRECONDITION);
  EXPECT_THAT(llm_last_error(), HasSubstr("header_only"));
}

TEST_F(AbiListingTest, HeaderOnlyReadsNoWeights) {
  struct Reads {
    uint64_t end = 0;
    int fd;
  } reads;
  reads.fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  const auto read = [](void* user_data, uint64_t offset, void* buffer, uint64_t size) -> int64_t {
    Reads& all = *static_cast<Reads*>(user_data);
    all.end = std::max(all.end, offset + size);
    return pread(all.fd, buffer, size, static_cast<off_t>(offset));
  };
  llm_model* model = nullptr;
  EXPECT_EQ(llm_model_open_reader(read, &reads, kFileBytes, &options_, &model), LLM_OK)
      << llm_last_error();
  llm_model_release(model);
  close(reads.fd);
  EXPECT_LE(reads.end, uint64_t{1} << 18) << "one chunk of the header's reader";
}

TEST_F(AbiListingTest, TheReservedFieldOfTheModelOptionsIsRefused) {
  options_.reserved = 1;
  llm_model* model = nullptr;
  EXPECT_EQ(llm_model_open(path_.data(), path_.size(), &options_, &model), LLM_UNIMPLEMENTED);
}

}  // namespace
}  // namespace llm
