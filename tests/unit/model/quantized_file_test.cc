// A tiny model's file with other weights: what changes, what does not, and what is refused.
#include "src/model/quantized_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "src/loader/gguf_writer.h"
#include "src/model/file_type.h"
#include "src/model/model.h"

namespace llm {
namespace {

using testing::HasSubstr;

constexpr Quantization kInt4 = {WeightFormat::kQ4_0, 32};
constexpr Quantization kInt8 = {WeightFormat::kQ8_0, 0};

std::unique_ptr<ModelFile> OpenTiny(const std::string& name) {
  absl::StatusOr<std::unique_ptr<ModelFile>> file =
      OpenModelFile(std::string(INLAY_TEST_DATA) + "/gguf/" + name);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

std::unique_ptr<WeightSource> OpenSource(std::unique_ptr<ModelFile> file) {
  absl::StatusOr<std::unique_ptr<WeightSource>> source = OpenGguf(std::move(file), {});
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

std::unique_ptr<WeightSource> Quantized(const QuantizeOptions& options,
                                        const std::string& name = "llama_h64-F32.gguf") {
  absl::StatusOr<QuantizedFile> quantized = QuantizeFile(OpenTiny(name), options, {});
  EXPECT_TRUE(quantized.ok()) << quantized.status();
  return OpenSource(std::move(quantized->file));
}

void ExpectRefused(const QuantizeOptions& options, const std::string& name,
                   const std::string& message) {
  const absl::Status status = QuantizeFile(OpenTiny(name), options, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

std::vector<float> Decoded(const WeightSource& source, const std::string& name) {
  const TensorInfo& tensor = *source.Find(name);
  std::vector<char> bytes(tensor.size_bytes);
  EXPECT_TRUE(source.Read(tensor, 0, bytes.size(), bytes.data()).ok());
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  GetWeightFormat(tensor.format).decode(bytes.data(), count, values.data());
  return values;
}

class Loaded {
 public:
  Loaded(const WeightSource& source, int threads) {
    pool_ = *ThreadPool::Create({.num_threads = threads});
    absl::StatusOr<std::unique_ptr<Model>> model = LoadModel(
        source, {.kernels = *FindKernels(""), .pool = pool_.get(), .allocator = &allocator_});
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }
  const Weights& weights() const { return model_->weights; }

 private:
  Allocator allocator_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Model> model_;
};

TEST(QuantizedFileTest, LinearLayersChangeTheirFormatAndTheRestKeepsItsBytes) {
  const auto before = OpenSource(OpenTiny("llama_h64-F32.gguf"));
  const auto after = Quantized({.linear = kInt4});
  ASSERT_EQ(after->tensors().size(), before->tensors().size());
  int changed = 0;
  for (size_t i = 0; i < before->tensors().size(); ++i) {
    const TensorInfo& was = before->tensors()[i];
    const TensorInfo& is = after->tensors()[i];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.shape, was.shape);
    const bool linear = was.shape.size() == 2 && was.name.find("blk.") == 0;
    EXPECT_EQ(is.format, linear ? WeightFormat::kQ4_0 : was.format) << is.name;
    if (linear) {
      ++changed;
    } else {
      EXPECT_EQ(Decoded(*after, is.name), Decoded(*before, is.name)) << is.name;
    }
  }
  EXPECT_EQ(changed, 14);
}

TEST(QuantizedFileTest, MetadataIsThatOfTheFile) {
  const auto before = OpenSource(OpenTiny("llama_h64-F32.gguf"));
  const auto after = Quantized({.linear = kInt8});
  ASSERT_EQ(after->metadata().Keys(), before->metadata().Keys());
  EXPECT_EQ(*after->metadata().GetInt("llama.block_count"),
            *before->metadata().GetInt("llama.block_count"));
  const TextList tokens = *after->metadata().GetStrings("tokenizer.ggml.tokens");
  const TextList expected = *before->metadata().GetStrings("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), expected.size());
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), expected.begin()));
}

TEST(QuantizedFileTest, TheFileTypeIsThatOfMostWeights) {
  constexpr char kKey[] = "general.file_type";
  ASSERT_EQ(*OpenSource(OpenTiny("llama_h64-F32.gguf"))->metadata().GetInt(kKey), 0);
  EXPECT_EQ(*Quantized({.linear = kInt4})->metadata().GetInt(kKey), 2);
  EXPECT_EQ(*Quantized({.linear = kInt8})->metadata().GetInt(kKey), 7);
  EXPECT_EQ(*Quantized({.linear = Quantization{WeightFormat::kQ4_1, 32}})->metadata().GetInt(kKey),
            3);
  EXPECT_EQ(*Quantized({.embedding = kInt8})->metadata().GetInt(kKey), 0) << "few weights";
}

TEST(QuantizedFileTest, AFileTypeWithoutANumberGoes) {
  GgufWriter before;
  before.AddString("a", "1");
  before.AddInt("general.file_type", 1);
  before.AddString("b", "2");
  const std::string header = before.Finish();
  const auto file = MemoryModelFile(header.data(), header.size(), "header");
  const absl::StatusOr<GgufContents> contents = ReadGgufHeader(*file, file->size(), {});
  ASSERT_TRUE(contents.ok()) << contents.status();
  const auto keys = [&](WeightFormat is) {
    const GgufValues values = WithFileType(*contents, WeightFormat::kF16, is);
    GgufWriter after;
    after.CopyValues(values.bytes, values.count);
    const std::string written = after.Finish();
    const auto source = OpenSource(MemoryModelFile(written.data(), written.size(), "written"));
    EXPECT_EQ(*source->metadata().GetString("b"), "2");
    return source->metadata().Keys().size();
  };
  EXPECT_EQ(keys(WeightFormat::kF16), 3u);
  EXPECT_EQ(keys(WeightFormat::kQ8_0), 3u);
  EXPECT_EQ(keys(WeightFormat::kF8_E4M3), 2u);
  EXPECT_EQ(keys(WeightFormat::kQ4_K), 2u);
}

TEST(QuantizedFileTest, RowsAreThoseThatEncodeRowWrites) {
  const auto before = OpenSource(OpenTiny("llama_h64-F32.gguf"));
  const auto after = Quantized({.linear = kInt4});
  for (const char* name : {"blk.0.attn_k.weight", "blk.0.ffn_down.weight"}) {
    const std::vector<float> weights = Decoded(*before, name);
    const TensorInfo& tensor = *after->Find(name);
    std::vector<char> expected(tensor.size_bytes), actual(tensor.size_bytes);
    const int64_t cols = tensor.shape[1];
    const int64_t row_bytes = RowBytes(GetWeightFormat(tensor.format), cols);
    for (int64_t row = 0; row < tensor.shape[0]; ++row) {
      EncodeRow(kInt4, &weights[static_cast<size_t>(row * cols)], cols,
                &expected[static_cast<size_t>(row * row_bytes)]);
    }
    ASSERT_TRUE(after->Read(tensor, 0, actual.size(), actual.data()).ok());
    EXPECT_EQ(actual, expected) << name;
    // Any part of it as well.
    ASSERT_TRUE(after->Read(tensor, 7, actual.size() - 20, actual.data()).ok());
    EXPECT_EQ(std::memcmp(actual.data(), &expected[7], actual.size() - 20), 0) << name;
  }
}

TEST(QuantizedFileTest, BitsDoNotDependOnTheNumberOfThreads) {
  const auto source = Quantized({.linear = kInt4, .embedding = kInt8});
  const Loaded one(*source, 1), three(*source, 3);
  ASSERT_EQ(one.weights().bytes.size(), three.weights().bytes.size());
  EXPECT_EQ(std::memcmp(one.weights().bytes.data(), three.weights().bytes.data(),
                        one.weights().bytes.size()),
            0);
}

TEST(QuantizedFileTest, LoadingTakesWhatTheHeaderPredicts) {
  const auto source = Quantized({.linear = kInt4, .embedding = kInt8});
  const ModelConfig config = *ReadModelConfig(*source);
  EXPECT_EQ(Loaded(*source, 2).weights().bytes.size(),
            *WeightsBytes(*source, config, **FindKernels("")));
}

TEST(QuantizedFileTest, TimeThatEncodingTakesIsCounted) {
  absl::StatusOr<QuantizedFile> quantized =
      QuantizeFile(OpenTiny("llama_h64-F32.gguf"), {.linear = kInt4}, {});
  ASSERT_TRUE(quantized.ok()) << quantized.status();
  EXPECT_EQ(*quantized->encode_ns, 0) << "nothing is read before it is asked for";
  const auto source = OpenSource(std::move(quantized->file));
  const Loaded loaded(*source, 1);
  EXPECT_GT(*quantized->encode_ns, 0);
  EXPECT_LE(*quantized->encode_ns, loaded.weights().read_ns);
}

TEST(QuantizedFileTest, KeepsTheAlignmentThatTheFileStates) {
  const auto before = OpenSource(OpenTiny("llama_h64-F32.gguf"));
  // The same file with data aligned to 128.
  size_t table_bytes = 0;
  for (const TensorInfo& tensor : before->tensors()) {
    table_bytes += tensor.name.size() + 8 * tensor.shape.size() + 24;
  }
  const absl::string_view header = before->header().bytes;
  GgufWriter writer;
  writer.CopyValues(header.substr(24, header.size() - 24 - table_bytes),
                    before->metadata().Keys().size());
  writer.AddInt("general.alignment", 128);
  std::string data;
  for (const TensorInfo& tensor : before->tensors()) {
    writer.AddTensor(tensor.name, tensor.format, tensor.shape, data.size());
    std::string bytes(tensor.size_bytes, '\0');
    ASSERT_TRUE(before->Read(tensor, 0, bytes.size(), bytes.data()).ok());
    data += bytes;
    data.resize((data.size() + 127) / 128 * 128);
  }
  const std::string file = writer.Finish(128) + data;
  absl::StatusOr<QuantizedFile> quantized =
      QuantizeFile(MemoryModelFile(file.data(), file.size(), "aligned"), {.linear = kInt4}, {});
  ASSERT_TRUE(quantized.ok()) << quantized.status();
  const auto after = OpenSource(std::move(quantized->file));
  const auto plain = Quantized({.linear = kInt4});
  for (const TensorInfo& tensor : after->tensors()) {
    EXPECT_EQ(tensor.file_offset % 128, 0u) << tensor.name;
    EXPECT_EQ(Decoded(*after, tensor.name), Decoded(*plain, tensor.name)) << tensor.name;
  }
}

TEST(QuantizedFileTest, WeightsInLowBitsStayUnlessTheyAreRequantised) {
  ExpectRefused({.linear = kInt4}, "llama_h64-Q8_0.gguf",
                "is Q8_0, which is encoded again with requantize alone");
  const auto again = Quantized({.linear = kInt4, .requantize = true}, "llama_h64-Q8_0.gguf");
  EXPECT_EQ(again->Find("blk.0.attn_q.weight")->format, WeightFormat::kQ4_0);
}

TEST(QuantizedFileTest, RefusesWhatMakesNoSense) {
  ExpectRefused({.requantize = true}, "llama_h64-Q8_0.gguf", "no tensor is to be quantised");
  ExpectRefused({.pruning = Pruning::kTwoOfFour}, "llama_h64-Q8_0.gguf",
                "Q8_0 weights are pruned only as they are requantised");
  ExpectRefused({.head = kInt8}, "gemma3_text-F32.gguf", "head_weights: the model's head is its");
}

TEST(QuantizedFileTest, TwoOfFourKeepsTheTwoLargestOfEachFourInputs) {
  const auto before = OpenSource(OpenTiny("llama_h64-BF16.gguf"));
  const auto after = Quantized({.pruning = Pruning::kTwoOfFour}, "llama_h64-BF16.gguf");
  const std::vector<float> was = Decoded(*before, "blk.1.ffn_up.weight");
  const std::vector<float> is = Decoded(*after, "blk.1.ffn_up.weight");
  EXPECT_EQ(after->Find("blk.1.ffn_up.weight")->format, WeightFormat::kBF16);
  for (size_t i = 0; i < was.size(); i += 4) {
    float smallest_kept = INFINITY, largest_pruned = 0;
    int kept = 0;
    for (size_t k = i; k < i + 4; ++k) {
      if (is[k] != 0) {
        EXPECT_EQ(is[k], was[k]);
        smallest_kept = std::min(smallest_kept, std::fabs(was[k]));
        ++kept;
      } else {
        largest_pruned = std::max(largest_pruned, std::fabs(was[k]));
      }
    }
    EXPECT_LE(kept, 2);
    EXPECT_LE(largest_pruned, smallest_kept);
  }
  EXPECT_EQ(Decoded(*after, "token_embd.weight"), Decoded(*before, "token_embd.weight"));
}

TEST(QuantizedFileTest, MagnitudePrunesTheSmallestPartOfEachOutput) {
  const auto after =
      Quantized({.linear = kInt8, .pruning = Pruning::kMagnitude, .pruned_part = 0.3f});
  const TensorInfo& tensor = *after->Find("blk.0.attn_q.weight");
  const std::vector<float> is = Decoded(*after, tensor.name);
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const auto begin = is.begin() + row * tensor.shape[1];
    EXPECT_GE(std::count(begin, begin + tensor.shape[1], 0.0f), 19);  // of 64; int8 adds some
  }
}

}  // namespace
}  // namespace llm
