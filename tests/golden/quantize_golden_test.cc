// KL divergence of weights quantised at load from the float model's, against the plain
// round-to-nearest references that come with the trained model.
#include <inlay/llm.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/golden/golden_util.h"

namespace llm {
namespace {

constexpr char kModel[] = INLAY_SHARED_DATA "/real/trained-5m";

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Rows of logits of a window, the float model's first; the others are compared as they come.
struct Rows {
  std::vector<float> base;
  size_t next = 0;
  double kl = 0;
  bool comparing = false;
};

void Compare(const float* base, const float* other, size_t size, double* kl) {
  const double base_sum = LogSumExp(base, size), other_sum = LogSumExp(other, size);
  for (size_t i = 0; i < size; ++i) {
    const double log_p = double{base[i]} - base_sum, log_q = double{other[i]} - other_sum;
    *kl += std::exp(log_p) * (log_p - log_q);
  }
}

int32_t OnRow(void* user_data, const llm_score_row* row) {
  Rows& rows = *static_cast<Rows*>(user_data);
  const auto size = static_cast<size_t>(row->num_logits);
  if (!rows.comparing) {
    rows.base.insert(rows.base.end(), row->logits, row->logits + size);
  } else {
    Compare(&rows.base[rows.next], row->logits, size, &rows.kl);
    rows.next += size;
  }
  return 0;
}

// The trained model with one choice of weights, and an engine with f32 keys and values.
class Scorer {
 public:
  Scorer(uint32_t linear_weights, bool float_activations) {
    llm_model_options options;
    llm_model_options_init(&options);
    options.linear_weights = linear_weights;
    options.float_activations = float_activations ? LLM_ON : LLM_OFF;
    options.num_threads = 2;
    EXPECT_EQ(llm_model_open(kModel, std::strlen(kModel), &options, &model_), LLM_OK)
        << llm_last_error();
    llm_engine_options engine_options;
    llm_engine_options_init(&engine_options);
    engine_options.num_threads = 2;
    engine_options.kv_dtype = LLM_KV_F32;
    engine_options.prefix_cache = LLM_OFF;
    engine_options.kv_tokens = 1024;
    engine_options.max_sequences = 64;  // rows of logits a step
    EXPECT_EQ(llm_engine_open(model_, &engine_options, &engine_), LLM_OK) << llm_last_error();
  }
  ~Scorer() {
    llm_engine_close(engine_);
    llm_model_release(model_);
  }

  std::vector<int32_t> Tokenize(const std::string& text) const {
    size_t count = 0;
    llm_tokenize(model_, text.data(), text.size(), 0, nullptr, 0, &count);
    std::vector<int32_t> ids(count);
    EXPECT_EQ(llm_tokenize(model_, text.data(), text.size(), 0, ids.data(), ids.size(), &count),
              LLM_OK);
    return ids;
  }
  void Score(const int32_t* window, size_t size, Rows* rows) {
    llm_score_request request;
    llm_score_request_init(&request);
    request.ids = window;
    request.num_ids = size;
    request.first = size / 2;
    request.on_row = &OnRow;
    request.user_data = rows;
    std::vector<float> logprobs(size);
    size_t count = 0;
    ASSERT_EQ(llm_score(engine_, &request, logprobs.data(), logprobs.size(), &count), LLM_OK)
        << llm_last_error();
  }

 private:
  llm_model* model_ = nullptr;
  llm_engine* engine_ = nullptr;
};

class QuantizeGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FileExists(std::string(kModel) + "/text_golden.json")) {
      GTEST_SKIP() << "shared/data is not here";
    }
    golden_ = ReadJson(std::string(kModel) + "/text_golden.json");
  }

  // The mean over all scored positions of a text, of `weights` from the float model.
  double MeanKl(const std::string& text_path, uint32_t weights, bool float_activations) {
    Scorer base(LLM_WEIGHTS_STORED, true);
    Scorer other(weights, float_activations);
    const std::vector<int32_t> ids = base.Tokenize(ReadText(text_path));
    const auto context = golden_["context"].get<size_t>();
    const size_t windows = std::min(golden_["max_windows"].get<size_t>(), ids.size() / context);
    Rows rows;
    for (size_t i = 0; i < windows; ++i) {
      rows.base.clear();
      rows.next = 0;
      for (const bool comparing : {false, true}) {
        rows.comparing = comparing;
        (comparing ? other : base).Score(&ids[i * context], context, &rows);
      }
    }
    return rows.kl / static_cast<double>(windows * (context / 2));
  }

  // Asserts with float activations, which are the arithmetic of the references; int8 ones err by
  // themselves, whatever the weights, and are told beside.
  void ExpectAtMost(const char* name, uint32_t weights, const char* reference, double part) {
    for (const auto& [text, path] : kTexts) {
      const double plain =
          golden_["rtn_reference"]["methods"][reference][text]["mean_kld_vs_float"];
      const double kl = MeanKl(path, weights, true);
      std::printf("%-14s %-12s KL %.3g with f32 activations, %.3g with int8 ones; %s %.3g\n", name,
                  text, kl, MeanKl(path, weights, false), reference, plain);
      EXPECT_LE(kl, part * plain) << name << " on " << text;
    }
  }

 private:
  static constexpr std::pair<const char*, const char*> kTexts[] = {
      {"jargon", INLAY_SHARED_DATA "/real/trained-5m/heldout.txt"},
      {"shakespeare", INLAY_SHARED_DATA "/eval/tinyshakespeare_tail_100k.txt"}};

  nlohmann::json golden_;
};

TEST_F(QuantizeGoldenTest, Int8DivergesNoMoreThanItsReference) {
  ExpectAtMost("int8:32", LLM_WEIGHTS_INT8_G32, "int8_channel_sym", 1);
  ExpectAtMost("int8:channel", LLM_WEIGHTS_INT8, "int8_channel_sym", 1);
}

TEST_F(QuantizeGoldenTest, Fp8DivergesNoMoreThanItsReference) {
  ExpectAtMost("fp8", LLM_WEIGHTS_FP8_E4M3, "fp8_e4m3_channel", 1);
}

TEST_F(QuantizeGoldenTest, Int4DivergesAtLeastAQuarterLessThanItsReference) {
  ExpectAtMost("int4:32", LLM_WEIGHTS_INT4_G32, "int4_g32_sym", 0.75);
}

TEST_F(QuantizeGoldenTest, Int4WithMinimaDivergesAtLeastAQuarterLessThanItsReference) {
  ExpectAtMost("int4:32:asym", LLM_WEIGHTS_INT4_ASYM_G32, "int4_g32_asym", 0.75);
}

}  // namespace
}  // namespace llm
