// One row at a time is f32; what is read ahead of it is small.
#include "src/model/encoded_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status_macros.h"
#include "src/model/hub_forms.h"
#include "src/model/nan_scales.h"
#include "src/model/prune.h"

namespace llm {
namespace {

constexpr int64_t kReadBytes = 256 << 10;  // of the source at once, or a row

class Rows final : public DerivedRows {
 public:
  Rows(const EncodedTensor& tensor, std::shared_ptr<std::atomic<int64_t>> encode_ns)
      : DerivedRows(RowBytes(GetWeightFormat(tensor.to.format), tensor.from.shape.back())),
        tensor_(tensor),
        format_(GetWeightFormat(tensor.from.format)),
        cols_(tensor.from.shape.back()),
        source_row_bytes_(RowBytes(format_, cols_)),
        row_bytes_(RowBytes(GetWeightFormat(tensor.to.format), cols_)),
        encode_ns_(std::move(encode_ns)) {}

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    std::vector<float> row(static_cast<size_t>(cols_));
    std::string source;
    const int64_t most = std::max<int64_t>(1, kReadBytes / source_row_bytes_);
    for (; count > 0; first += most, count -= most) {
      const int64_t rows = std::min(count, most);
      source.resize(static_cast<size_t>(rows * source_row_bytes_));
      const auto offset = static_cast<uint64_t>(first * source_row_bytes_);
      LLM_RETURN_IF_ERROR(
          tensor_.file->Read(tensor_.from.file_offset + offset, source.size(), source.data()));
      LLM_RETURN_IF_ERROR(RefuseNanScales({.tensor = tensor_.from.name,
                                           .format = tensor_.from.format,
                                           .cols = cols_,
                                           .first = first,
                                           .count = rows,
                                           .blocks = source.data()}));
      Encode(source.data(), rows, row.data(), dst);
      dst += rows * row_bytes_;
    }
    return absl::OkStatus();
  }

  void Encode(const char* source, int64_t rows, float* row, char* dst) const {
    const SteadyClock clock;
    const int64_t start_ns = clock.NowNs();
    for (int64_t i = 0; i < rows; ++i) {
      format_.decode(source + i * source_row_bytes_, cols_, row);
      Prune(tensor_.pruning, tensor_.pruned_part, row, cols_);
      EncodeRow(tensor_.to, row, cols_, dst + i * row_bytes_);
    }
    *encode_ns_ += clock.NowNs() - start_ns;
  }

  const EncodedTensor tensor_;
  const WeightFormatInfo& format_;
  const int64_t cols_;
  const int64_t source_row_bytes_;
  const int64_t row_bytes_;
  const std::shared_ptr<std::atomic<int64_t>> encode_ns_;
};

}  // namespace

std::shared_ptr<const DerivedBytes> EncodedRows(const EncodedTensor& tensor,
                                                std::shared_ptr<std::atomic<int64_t>> encode_ns) {
  return std::make_shared<Rows>(tensor, std::move(encode_ns));
}

}  // namespace llm
