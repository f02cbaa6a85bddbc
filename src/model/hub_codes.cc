// Codes are brought into the order of rows and of groups; scales become f16 where nothing is lost
// by that.
#include "src/model/hub_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/quant/q8_f32.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_companion.h"
#include "src/model/hub_forms.h"
#include "src/model/hub_input_order.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

constexpr int64_t kBlock = 32;  // elements, but of Q8_F32

// Where AWQ has output i of eight.
constexpr int kAwqField[8] = {0, 4, 1, 5, 2, 6, 3, 7};

WeightFormat FormatOf(const CodeLayout& layout) {
  const bool wide = layout.codes.bits == 8;
  const int64_t group_size = layout.codes.cols / layout.groups;
  const bool halves = layout.zeros.words != nullptr || group_size % Q8_F32::kBlockSize != 0;
  if (wide && layout.scales->type == SafeType::kF32 && !halves) return WeightFormat::kQ8_F32;
  if (layout.zeros.words == nullptr) return wide ? WeightFormat::kQ8_0 : WeightFormat::kQ4_0;
  return wide ? WeightFormat::kQ8_Z : WeightFormat::kQ4_Z;
}

class CodeRows final : public DerivedRows {
 public:
  explicit CodeRows(const CodeLayout& layout)
      : DerivedRows(RowBytes(GetWeightFormat(FormatOf(layout)), layout.codes.cols)),
        layout_(layout),
        format_(GetWeightFormat(FormatOf(layout))),
        wide_scales_(format_.format == WeightFormat::kQ8_F32),
        has_zeros_(layout.zeros.words != nullptr) {
    Keep(&layout_.codes.words, &codes_);
    Keep(&layout_.scales, &scales_);
    Keep(&layout_.zeros.words, &zeros_);
    Keep(&layout_.groups_of_inputs, &groups_of_inputs_);
  }

 private:
  // Of some rows.
  struct Parts {
    std::string codes;           // [count, inputs]
    std::string zeros;           // [count, groups], where there are any
    std::vector<float> scales;   // [count, groups]
    std::vector<int32_t> order;  // [inputs]: which one comes at a place; empty: as they are
  };

  // The layout's tensors go with the directory that is being opened.
  static void Keep(const SafeTensor** tensor, SafeTensor* copy) {
    if (*tensor == nullptr) return;
    *copy = **tensor;
    *tensor = copy;
  }
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override;
  absl::Status ReadZeros(int64_t first, int64_t count, std::string* zeros) const;
  absl::Status ReadScales(int64_t first, int64_t count, std::vector<float>* scales) const;
  absl::Status CheckHalf(float scale) const;
  char* WriteBlock(const Parts& parts, int64_t row, int64_t block, char* dst) const;

  CodeLayout layout_;
  const WeightFormatInfo& format_;
  const bool wide_scales_;
  const bool has_zeros_;
  SafeTensor codes_;
  SafeTensor scales_;
  SafeTensor zeros_;
  SafeTensor groups_of_inputs_;
};

absl::Status CodeRows::ReadRows(int64_t first, int64_t count, char* dst) const {
  Parts parts;
  LLM_RETURN_IF_ERROR(ReadInts(layout_.codes, first, count, &parts.codes));
  LLM_RETURN_IF_ERROR(ReadScales(first, count, &parts.scales));
  if (has_zeros_) LLM_RETURN_IF_ERROR(ReadZeros(first, count, &parts.zeros));
  if (layout_.groups_of_inputs != nullptr) {
    LLM_ASSIGN_OR_RETURN(parts.order, OrderOfInputs(*layout_.groups_of_inputs, layout_.groups));
  }
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t block = 0; block < layout_.codes.cols / format_.block_size; ++block) {
      dst = WriteBlock(parts, row, block, dst);
    }
  }
  return absl::OkStatus();
}

char* CodeRows::WriteBlock(const Parts& parts, int64_t row, int64_t block, char* dst) const {
  const int64_t cols = layout_.codes.cols;
  const char* codes = parts.codes.data() + row * cols;
  const int64_t size = format_.block_size;
  uint8_t quants[Q8_F32::kBlockSize];
  for (int64_t i = 0; i < size; ++i) {
    const int64_t place = block * size + i;
    const int64_t input = parts.order.empty() ? place : parts.order[static_cast<size_t>(place)];
    quants[i] = static_cast<uint8_t>(codes[input]);
  }
  const int64_t blocks_per_group = cols / layout_.groups / size;
  const auto group = static_cast<size_t>(row * layout_.groups + block / blocks_per_group);
  const float scale = parts.scales[group];
  const uint16_t half = F32ToF16(scale);
  const size_t scale_bytes = wide_scales_ ? sizeof(scale) : sizeof(half);
  std::memcpy(dst, wide_scales_ ? static_cast<const void*>(&scale) : &half, scale_bytes);
  dst += scale_bytes;
  if (has_zeros_) *dst++ = parts.zeros[group];
  if (layout_.codes.bits == 8) {
    const uint8_t flip = has_zeros_ || layout_.is_signed ? 0 : 0x80;
    for (int64_t i = 0; i < size; ++i) *dst++ = static_cast<char>(quants[i] ^ flip);
    return dst;
  }
  for (int64_t i = 0; i < kBlock / 2; ++i) {
    *dst++ = static_cast<char>(quants[i] | quants[i + kBlock / 2] << 4);
  }
  return dst;
}

absl::Status CodeRows::ReadZeros(int64_t first, int64_t count, std::string* zeros) const {
  LLM_RETURN_IF_ERROR(ReadInts(layout_.zeros, first, count, zeros));
  const int largest = (1 << layout_.zeros.bits) - 1;
  for (char& zero : *zeros) {
    const int biased = static_cast<uint8_t>(zero) + layout_.zero_bias;
    if (biased > largest) {  // some readers take it for 0
      return absl::UnimplementedError(absl::StrCat("tensor ", Printable(layout_.zeros.words->name),
                                                   ": the zero point ", biased, " of ",
                                                   layout_.zeros.bits, " bits has two readings"));
    }
    zero = static_cast<char>(biased);
  }
  return absl::OkStatus();
}

absl::Status CodeRows::ReadScales(int64_t first, int64_t count, std::vector<float>* scales) const {
  const bool transposed = layout_.scales_transposed;
  scales->resize(static_cast<size_t>(count * layout_.groups));
  // Along rows one piece; else one for each group.
  const int64_t pieces = transposed ? layout_.groups : 1;
  const int64_t length = transposed ? count : count * layout_.groups;
  std::vector<float> values;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t at = transposed ? piece * layout_.codes.rows + first : first * layout_.groups;
    LLM_RETURN_IF_ERROR(ReadFloats(*layout_.scales, at, length, &values));
    for (int64_t i = 0; i < length; ++i) {
      const int64_t to = transposed ? i * layout_.groups + piece : i;
      const float scale = values[static_cast<size_t>(i)];
      LLM_RETURN_IF_ERROR(CheckHalf(scale));
      (*scales)[static_cast<size_t>(to)] = scale;
    }
  }
  return absl::OkStatus();
}

absl::Status CodeRows::CheckHalf(float scale) const {
  if (!std::isfinite(scale)) return HasNan(*layout_.scales);
  if (wide_scales_ || F16ToF32(F32ToF16(scale)) == scale) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("tensor ", Printable(layout_.scales->name),
                                               ": the scale ", scale, " has no exact form in f16"));
}

// Words [begin, end) of lines [first_line, last_line) of a tensor of words.
struct WordRange {
  int64_t first_line;
  int64_t last_line;
  int64_t begin;
  int64_t end;
};

// The words that hold some rows.
WordRange RangeOf(const PackedInts& ints, int64_t first, int64_t count) {
  const int64_t per_word = ints.packs_rows ? ints.per_word() : 1;
  const int64_t begin = first / per_word;
  const int64_t end = CeilDiv(first + count, per_word);
  const std::vector<int64_t> shape = ints.shape();
  return ints.transposed ? WordRange{0, shape[0], begin, end} : WordRange{begin, end, 0, shape[1]};
}

// Of a word, whose first integer is (row, col) of `out`, those in rows [0, count); a last word may
// be partial.
void Unpack(const PackedInts& ints, uint32_t word, int64_t row, int64_t col, int64_t count,
            std::string* out) {
  const uint32_t mask = (1u << ints.bits) - 1;
  // Integers [begin, end) of the word exist and are asked for.
  const int64_t begin = std::max<int64_t>(ints.packs_rows ? -row : 0, 0);
  const int64_t left = ints.packs_rows ? count - row : ints.cols - col;
  const int64_t end = std::min(left, ints.per_word());
  const int64_t step = ints.packs_rows ? ints.cols : 1;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t field = ints.interleaved ? kAwqField[i] : i;
    (*out)[static_cast<size_t>(row * ints.cols + col + i * step)] =
        static_cast<char>(word >> (field * ints.bits) & mask);
  }
}

}  // namespace

std::vector<int64_t> PackedInts::shape() const {
  const int64_t words_of_rows = packs_rows ? CeilDiv(rows, per_word()) : rows;
  const int64_t words_of_cols = packs_rows ? cols : CeilDiv(cols, per_word());
  return transposed ? std::vector<int64_t>{words_of_cols, words_of_rows}
                    : std::vector<int64_t>{words_of_rows, words_of_cols};
}

absl::Status ReadInts(const PackedInts& ints, int64_t first, int64_t count, std::string* out) {
  out->resize(static_cast<size_t>(count * ints.cols));
  const WordRange range = RangeOf(ints, first, count);
  const int64_t line_words = ints.shape()[1];
  const int64_t row_unit = ints.packs_rows ? ints.per_word() : 1;
  const int64_t col_unit = ints.packs_rows ? 1 : ints.per_word();
  std::vector<uint32_t> words(static_cast<size_t>(range.end - range.begin));
  for (int64_t line = range.first_line; line < range.last_line; ++line) {
    const auto at = static_cast<uint64_t>(line * line_words + range.begin);
    LLM_RETURN_IF_ERROR(ints.words->file->Read(ints.words->offset + at * sizeof(uint32_t),
                                               words.size() * sizeof(uint32_t), words.data()));
    for (int64_t i = 0; i < static_cast<int64_t>(words.size()); ++i) {
      const int64_t place = range.begin + i;
      const int64_t row = (ints.transposed ? place : line) * row_unit - first;
      const int64_t col = (ints.transposed ? line : place) * col_unit;
      Unpack(ints, words[static_cast<size_t>(i)], row, col, count, out);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HubPresented> PresentCodes(const CodeLayout& layout) {
  const int64_t cols = layout.codes.cols;
  LLM_RETURN_IF_ERROR(CheckFloats(*layout.scales));
  const bool divides =
      layout.groups >= 1 && cols % layout.groups == 0 && cols / layout.groups % kBlock == 0;
  if (!divides) {
    return absl::UnimplementedError(
        absl::StrCat(layout.groups, " groups in ", cols, " inputs: no multiples of ", kBlock));
  }
  if (layout.zeros.words != nullptr) {
    LLM_RETURN_IF_ERROR(CheckCompanion(*layout.zeros.words, SafeType::kI32, layout.zeros.shape()));
  }
  CodeLayout used = layout;
  std::shared_ptr<const DerivedBytes> order;
  if (layout.groups_of_inputs != nullptr) {
    LLM_ASSIGN_OR_RETURN(const bool in_order,
                         CheckGroupsOfInputs(*layout.groups_of_inputs, cols, layout.groups));
    if (in_order) used.groups_of_inputs = nullptr;
    if (!in_order) order = InputOrder(*layout.groups_of_inputs, layout.groups);
  }
  LLM_ASSIGN_OR_RETURN(
      HubPresented presented,
      PresentDerived(FormatOf(used), {layout.codes.rows, cols}, std::make_shared<CodeRows>(used)));
  presented.order = std::move(order);
  return presented;
}

}  // namespace llm
