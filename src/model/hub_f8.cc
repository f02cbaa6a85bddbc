// Scales of whatever they are shared by are repeated in each block.
#include "src/model/hub_f8.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/quant/f8_e4m3.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/model/hub_companion.h"
#include "src/model/hub_forms.h"

namespace llm {
namespace {

constexpr int64_t kBlock = F8_E4M3::kBlockSize;

int64_t BytesOfRow(int64_t cols) { return cols / kBlock * static_cast<int64_t>(sizeof(F8_E4M3)); }

// Codes [rows, cols] with scales [.., scale_cols], each for block_rows x block_cols of them.
struct F8Matrix {
  SafeTensor codes;
  SafeTensor scales;
  int64_t block_rows = 0;
  int64_t block_cols = 0;
  int64_t scale_cols = 1;

  int64_t rows() const { return codes.shape[0]; }
  int64_t cols() const { return codes.shape[1]; }
};

// The scales of some rows.
struct F8Scales {
  int64_t first = 0;          // row of scales
  std::vector<float> values;  // [.., scale_cols]

  float At(const F8Matrix& matrix, int64_t row, int64_t col) const {
    const int64_t scale_row = row / matrix.block_rows - first;
    return values[static_cast<size_t>(scale_row * matrix.scale_cols + col / matrix.block_cols)];
  }
};

absl::Status ReadScales(const F8Matrix& matrix, int64_t first, int64_t count, F8Scales* scales) {
  scales->first = first / matrix.block_rows;
  const int64_t rows = (first + count - 1) / matrix.block_rows + 1 - scales->first;
  LLM_RETURN_IF_ERROR(ReadFloats(matrix.scales, scales->first * matrix.scale_cols,
                                 rows * matrix.scale_cols, &scales->values));
  const bool finite = std::all_of(scales->values.begin(), scales->values.end(),
                                  [](float scale) { return std::isfinite(scale); });
  return finite ? absl::OkStatus() : HasNan(matrix.scales);
}

absl::Status ReadF8(const F8Matrix& matrix, int64_t first, int64_t count, char* dst) {
  std::string codes;
  F8Scales scales;
  LLM_RETURN_IF_ERROR(ReadByteRows(matrix.codes, matrix.cols(), first, count, &codes));
  LLM_RETURN_IF_ERROR(RefuseNans(matrix.codes, codes));
  LLM_RETURN_IF_ERROR(ReadScales(matrix, first, count, &scales));
  const char* from = codes.data();
  F8_E4M3 block;
  for (int64_t row = first; row < first + count; ++row) {
    for (int64_t col = 0; col < matrix.cols(); col += kBlock) {
      block.scale = scales.At(matrix, row, col);
      std::memcpy(block.codes, from, sizeof(block.codes));
      std::memcpy(dst, &block, sizeof(block));
      from += sizeof(block.codes);
      dst += sizeof(block);
    }
  }
  return absl::OkStatus();
}

class F8Rows final : public DerivedRows {
 public:
  explicit F8Rows(F8Matrix matrix)
      : DerivedRows(BytesOfRow(matrix.cols())), matrix_(std::move(matrix)) {}

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    return ReadF8(matrix_, first, count, dst);
  }

  const F8Matrix matrix_;
};

struct Heads {
  int64_t key_rows = 0;
  int64_t value_rows = 0;

  int64_t rows() const { return key_rows + value_rows; }
};

class F8ValueRows final : public DerivedRows {
 public:
  F8ValueRows(F8Matrix matrix, const Heads& heads)
      : DerivedRows(BytesOfRow(matrix.cols())), matrix_(std::move(matrix)), heads_(heads) {}

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    while (count > 0) {
      const int64_t head = first / heads_.value_rows;
      const int64_t row = first % heads_.value_rows;
      const int64_t run = std::min(count, heads_.value_rows - row);
      LLM_RETURN_IF_ERROR(ReadF8(matrix_, head * heads_.rows() + heads_.key_rows + row, run, dst));
      dst += run * BytesOfRow(matrix_.cols());
      first += run;
      count -= run;
    }
    return absl::OkStatus();
  }

  const F8Matrix matrix_;
  const Heads heads_;
};

// Row r of a head is column r of its keys.
class F8KeyRows final : public DerivedRows {
 public:
  F8KeyRows(F8Matrix matrix, const Heads& heads)
      : DerivedRows(BytesOfRow(heads.key_rows)), matrix_(std::move(matrix)), heads_(heads) {}

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    while (count > 0) {
      const int64_t head = first / matrix_.cols();
      const int64_t col = first % matrix_.cols();
      const int64_t run = std::min(count, matrix_.cols() - col);
      LLM_RETURN_IF_ERROR(ReadHead(head, col, run, dst));
      dst += run * BytesOfRow(heads_.key_rows);
      first += run;
      count -= run;
    }
    return absl::OkStatus();
  }

  // Columns [col, col + count) of one head's keys.
  absl::Status ReadHead(int64_t head, int64_t col, int64_t count, char* dst) const {
    const int64_t begin = head * heads_.rows();
    const auto width = static_cast<size_t>(count);
    std::string codes(width * static_cast<size_t>(heads_.key_rows), '\0');
    for (int64_t key = 0; key < heads_.key_rows; ++key) {
      const auto at = static_cast<uint64_t>((begin + key) * matrix_.cols() + col);
      LLM_RETURN_IF_ERROR(matrix_.codes.file->Read(matrix_.codes.offset + at, width,
                                                   &codes[static_cast<size_t>(key) * width]));
    }
    LLM_RETURN_IF_ERROR(RefuseNans(matrix_.codes, codes));
    F8Scales scales;
    LLM_RETURN_IF_ERROR(ReadScales(matrix_, begin, heads_.key_rows, &scales));
    F8_E4M3 block;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t key = 0; key < heads_.key_rows; key += kBlock) {
        block.scale = scales.At(matrix_, begin + key, col + i);
        const char* from = &codes[static_cast<size_t>(key * count + i)];
        for (int64_t k = 0; k < kBlock; ++k) {
          block.codes[k] = static_cast<uint8_t>(from[k * count]);
        }
        std::memcpy(dst, &block, sizeof(block));
        dst += sizeof(block);
      }
    }
    return absl::OkStatus();
  }

  const F8Matrix matrix_;
  const Heads heads_;
};

absl::StatusOr<F8Matrix> MatrixOf(const SafeTensor& codes, const std::string& stem,
                                  const HubExtras& extras, const SafetensorsSet& set) {
  if (codes.type != SafeType::kF8E4M3 || codes.shape.size() != 2) {
    return WrongCompanion(codes, "F8_E4M3 [outputs, inputs]");
  }
  const bool inverse = set.tensors.count(stem + "weight_scale_inv") != 0;
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales,
                       FindCompanion(set, stem + (inverse ? "weight_scale_inv" : "weight_scale")));
  LLM_RETURN_IF_ERROR(CheckFloats(*scales));
  F8Matrix matrix = {.codes = codes, .scales = *scales};
  if (extras.block_rows > 0) {
    matrix.block_rows = extras.block_rows;
    matrix.block_cols = extras.block_cols;
    matrix.scale_cols = CeilDiv(matrix.cols(), matrix.block_cols);
    LLM_RETURN_IF_ERROR(CheckCompanion(
        *scales, scales->type, {CeilDiv(matrix.rows(), matrix.block_rows), matrix.scale_cols}));
    return matrix;
  }
  matrix.block_cols = matrix.cols();
  matrix.block_rows = matrix.rows();
  const std::vector<int64_t> none, one = {1}, per_row = {matrix.rows(), 1};
  if (scales->shape == none || scales->shape == one) return matrix;
  matrix.block_rows = 1;
  LLM_RETURN_IF_ERROR(CheckCompanion(*scales, scales->type, per_row));
  return matrix;
}

// Each block of a transposed head has one scale.
absl::Status CheckKeys(const F8Matrix& matrix, const Heads& heads) {
  for (int64_t begin = 0; begin < matrix.rows(); begin += heads.rows()) {
    for (int64_t row = begin; row < begin + heads.key_rows; row += kBlock) {
      if (row / matrix.block_rows == (row + kBlock - 1) / matrix.block_rows) continue;
      return absl::UnimplementedError(
          absl::StrCat("rows ", row, " to ", row + kBlock - 1, " of its keys have several scales"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HubPresented> PresentF8(const SafeTensor& codes, const std::string& stem,
                                       const HubExtras& extras, const SafetensorsSet& set) {
  LLM_ASSIGN_OR_RETURN(F8Matrix matrix, MatrixOf(codes, stem, extras, set));
  return PresentDerived(WeightFormat::kF8_E4M3, codes.shape,
                        std::make_shared<F8Rows>(std::move(matrix)));
}

absl::StatusOr<HubPresented> PresentF8Heads(const SafeTensor& codes, bool keys,
                                            const HubExtras& extras, const SafetensorsSet& set) {
  const std::string stem = codes.name.substr(0, codes.name.rfind('.') + 1);
  LLM_ASSIGN_OR_RETURN(F8Matrix matrix, MatrixOf(codes, stem, extras, set));
  const Heads heads = {extras.key_rows, extras.value_rows};
  if (heads.key_rows < 1 || heads.value_rows < 1 || matrix.rows() % heads.rows() != 0) {
    return WrongCompanion(codes, absl::StrCat("[heads * ", heads.rows(), ", inputs]"));
  }
  const int64_t count = matrix.rows() / heads.rows();
  const int64_t inputs = matrix.cols();
  if (!keys) {
    return PresentDerived(WeightFormat::kF8_E4M3, {count, heads.value_rows, inputs},
                          std::make_shared<F8ValueRows>(std::move(matrix), heads));
  }
  LLM_RETURN_IF_ERROR(CheckKeys(matrix, heads));
  return PresentDerived(WeightFormat::kF8_E4M3, {count, inputs, heads.key_rows},
                        std::make_shared<F8KeyRows>(std::move(matrix), heads));
}

}  // namespace llm
