// How fast each pair of dimensions turns: the base, and the ways of stretching it to longer
// contexts.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "src/model/architectures/architecture.h"

namespace llm {
namespace {

constexpr int kMaxContextLength = 1 << 26;

double InvFreq(int rope_dim, float base, int i) {
  return std::pow(static_cast<double>(base), -2.0 * i / rope_dim);
}

// The (fractional) pair of dimensions that turns `rotations` times over the original context.
double PairOfRotations(int rope_dim, float base, int original_context, float rotations) {
  const double wavelength = original_context / (2 * std::numbers::pi * double{rotations});
  return rope_dim * std::log(wavelength) / (2 * std::log(static_cast<double>(base)));
}

// Yarn (Peng et al., 2023): pairs that turn often stay as they are, those that turn seldom are
// stretched, and between them the share of stretching rises linearly.
void StretchYarn(const RopeScaling& scaling, float base, RopeVariant* rope) {
  const int rope_dim = static_cast<int>(rope->inv_freq.size()) * 2;
  double low = PairOfRotations(rope_dim, base, scaling.original_context, scaling.beta_fast);
  double high = PairOfRotations(rope_dim, base, scaling.original_context, scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope_dim - 1.0);
  if (low == high) high += 0.001;
  for (int i = 0; i < rope_dim / 2; ++i) {
    const double stretched = std::clamp((i - low) / (high - low), 0.0, 1.0);
    const double factor = (1 - stretched) + stretched / double{scaling.factor};
    rope->inv_freq[static_cast<size_t>(i)] =
        static_cast<float>(InvFreq(rope_dim, base, i) * factor);
  }
}

// Llama 3.1: by wavelength, in parts of the original context.
void StretchLlama3(const RopeScaling& scaling, RopeVariant* rope) {
  for (float& inv_freq : rope->inv_freq) {
    const double turns = scaling.original_context * double{inv_freq} / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - double{scaling.low_freq_factor}) /
                                       double{scaling.high_freq_factor - scaling.low_freq_factor},
                                   0.0, 1.0);
    inv_freq *= static_cast<float>(kept + (1 - kept) / double{scaling.factor});
  }
}

RopeScaling::Type ScalingType(ConfigReader* reader) {
  const std::string type = reader->StringOr("rope.scaling.type", "linear");
  if (type == "none") return RopeScaling::kNone;
  if (type == "linear") return RopeScaling::kLinear;  // by a factor of 1 where none is given
  if (type == "yarn") return RopeScaling::kYarn;
  if (type == "llama3") return RopeScaling::kLlama3;
  if (type == "longrope") return RopeScaling::kLongrope;
  reader->Fail(absl::UnimplementedError(absl::StrCat("key ", reader->FullName("rope.scaling.type"),
                                                     ": \"", type, "\" is not supported")));
  return RopeScaling::kNone;
}

void ReadYarn(ConfigReader* reader, RopeScaling* scaling) {
  scaling->beta_fast = reader->FloatOr("rope.scaling.yarn_beta_fast", 32.0f);
  scaling->beta_slow = reader->FloatOr("rope.scaling.yarn_beta_slow", 1.0f);
  scaling->truncate = reader->BoolOr("rope.scaling.yarn_truncate", scaling->truncate);
  if (reader->FloatOr("rope.scaling.yarn_ext_factor", 1.0f) != 1.0f) {
    reader->Fail(absl::UnimplementedError(
        absl::StrCat("key ", reader->FullName("rope.scaling.yarn_ext_factor"), ": is not 1")));
  }
  const double log_factor = std::log(std::max(1.0, double{scaling->factor}));
  scaling->magnitude = static_cast<float>(1 + 0.1 * log_factor);
  scaling->magnitude = reader->FloatOr("rope.scaling.yarn_attn_factor", scaling->magnitude);
}

void ReadLlama3(ConfigReader* reader, RopeScaling* scaling) {
  scaling->low_freq_factor = reader->FloatOr("rope.scaling.low_freq_factor", 1.0f);
  scaling->high_freq_factor = reader->FloatOr("rope.scaling.high_freq_factor", 4.0f);
  if (scaling->high_freq_factor > scaling->low_freq_factor) return;
  reader->Fail(absl::InvalidArgumentError(
      absl::StrCat("key ", reader->FullName("rope.scaling.high_freq_factor"),
                   ": is not above low_freq_factor")));
}

}  // namespace

RopeScaling ReadRopeScaling(ConfigReader* reader, bool truncate_yarn) {
  RopeScaling scaling;
  scaling.truncate = truncate_yarn;
  scaling.type = ScalingType(reader);
  // Files older than `rope.scaling.type` say it with one number.
  scaling.factor = reader->FloatOr("rope.scale_linear", 1.0f);
  scaling.factor = reader->FloatOr("rope.scaling.factor", scaling.factor);
  reader->Harmless("rope.scaling.finetuned");
  scaling.original_context =
      reader->SizeOr("rope.scaling.original_context_length", kMaxContextLength, 0);
  const bool needs_original =
      scaling.type != RopeScaling::kNone && scaling.type != RopeScaling::kLinear;
  if (needs_original && scaling.original_context == 0) {
    reader->Fail(absl::NotFoundError(absl::StrCat(
        "key ", reader->FullName("rope.scaling.original_context_length"), ": missing")));
    scaling.original_context = 1;
  }
  if (scaling.type == RopeScaling::kYarn) ReadYarn(reader, &scaling);
  if (scaling.type == RopeScaling::kLlama3) ReadLlama3(reader, &scaling);
  // An architecture that knows no factors refuses the tensors; without them it would turn unscaled.
  if (scaling.type == RopeScaling::kLongrope &&
      reader->source().Find("rope_factors_long.weight") == nullptr) {
    reader->Fail(absl::NotFoundError("tensor rope_factors_long.weight: missing"));
  }
  return scaling;
}

RopeVariant MakeRope(int rope_dim, float base, const RopeScaling& scaling) {
  const float divisor = scaling.type == RopeScaling::kLinear ? scaling.factor : 1.0f;
  RopeVariant rope;
  for (int i = 0; i < rope_dim / 2; ++i) {
    rope.inv_freq.push_back(static_cast<float>(InvFreq(rope_dim, base, i) / double{divisor}));
  }
  rope.magnitude = scaling.magnitude;
  if (scaling.type == RopeScaling::kYarn) StretchYarn(scaling, base, &rope);
  if (scaling.type == RopeScaling::kLlama3) StretchLlama3(scaling, &rope);
  return rope;
}

}  // namespace llm
