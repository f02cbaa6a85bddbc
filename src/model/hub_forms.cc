// Reads of whole rows, which loading makes, go straight into place.
#include "src/model/hub_forms.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "src/base/status_macros.h"
#include "src/model/nan_scales.h"

namespace llm {
namespace {

class OnePlusVector final : public DerivedBytes {
 public:
  OnePlusVector(const SafeTensor& tensor, WeightFormat format)
      : file_(*tensor.file), offset_(tensor.offset), format_(GetWeightFormat(format)) {}

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    const uint64_t begin = offset / sizeof(float);
    const uint64_t count = (offset + size + sizeof(float) - 1) / sizeof(float) - begin;
    const auto block_bytes = static_cast<uint64_t>(format_.block_bytes);
    std::string stored(static_cast<size_t>(count * block_bytes), '\0');
    LLM_RETURN_IF_ERROR(file_.Read(offset_ + begin * block_bytes, stored.size(), stored.data()));
    std::vector<float> values(static_cast<size_t>(count));
    format_.decode(stored.data(), static_cast<int64_t>(count), values.data());
    for (float& value : values) value += 1.0f;
    std::memcpy(dst, reinterpret_cast<const char*>(values.data()) + offset % sizeof(float),
                static_cast<size_t>(size));
    return absl::OkStatus();
  }

 private:
  const ModelFile& file_;
  const uint64_t offset_;
  const WeightFormatInfo& format_;
};

class ViewedRows final : public DerivedRows {
 public:
  ViewedRows(const SafeTensor& tensor, const TensorView& view)
      : DerivedRows(view.cols * Bytes(tensor)),
        file_(*tensor.file),
        offset_(tensor.offset),
        element_bytes_(static_cast<size_t>(Bytes(tensor))),
        view_(view) {}

 private:
  // Elements further apart than that are not worth reading what lies between.
  static constexpr int64_t kNear = 4;

  static int64_t Bytes(const SafeTensor& tensor) {
    return static_cast<int64_t>(SafeTypeBytes(tensor.type));
  }

  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    const auto row_bytes = static_cast<size_t>(view_.cols) * element_bytes_;
    while (count > 0) {
      // Of one part.
      const int64_t row = first % view_.rows;
      const int64_t run = std::min(count, view_.rows - row);
      const int64_t at = view_.first + first / view_.rows * view_.part_step + row * view_.row_step;
      LLM_RETURN_IF_ERROR(view_.col_step <= kNear ? ReadAlongRows(at, run, dst)
                                                  : ReadAlongColumns(at, run, dst));
      dst += static_cast<size_t>(run) * row_bytes;
      first += run;
      count -= run;
    }
    return absl::OkStatus();
  }

  absl::Status ReadElements(int64_t at, int64_t count, char* dst) const {
    return file_.Read(offset_ + static_cast<uint64_t>(at) * element_bytes_,
                      static_cast<uint64_t>(count) * element_bytes_, dst);
  }

  absl::Status ReadAlongRows(int64_t at, int64_t rows, char* dst) const {
    const int64_t span = (view_.cols - 1) * view_.col_step + 1;
    std::string whole(view_.col_step > 1 ? static_cast<size_t>(span) * element_bytes_ : 0, '\0');
    for (int64_t row = 0; row < rows; ++row) {
      char* to = whole.empty() ? dst : whole.data();
      LLM_RETURN_IF_ERROR(ReadElements(at + row * view_.row_step, span, to));
      if (!whole.empty()) Pick(whole, view_.col_step, view_.cols, element_bytes_, dst);
      dst += static_cast<size_t>(view_.cols) * element_bytes_;
    }
    return absl::OkStatus();
  }

  // A run of rows is read column by column: in the file a column is the row.
  absl::Status ReadAlongColumns(int64_t at, int64_t rows, char* dst) const {
    const int64_t span = (rows - 1) * view_.row_step + 1;
    std::string column(static_cast<size_t>(span) * element_bytes_, '\0');
    const size_t row_bytes = static_cast<size_t>(view_.cols) * element_bytes_;
    for (int64_t col = 0; col < view_.cols; ++col) {
      LLM_RETURN_IF_ERROR(ReadElements(at + col * view_.col_step, span, column.data()));
      Pick(column, view_.row_step, rows, row_bytes,
           dst + static_cast<size_t>(col) * element_bytes_);
    }
    return absl::OkStatus();
  }

  // Every step-th element, written `to_step` bytes apart.
  void Pick(const std::string& from, int64_t step, int64_t count, size_t to_step, char* to) const {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to, from.data() + static_cast<size_t>(i * step) * element_bytes_, element_bytes_);
      to += to_step;
    }
  }

  const ModelFile& file_;
  const uint64_t offset_;
  const size_t element_bytes_;
  const TensorView view_;
};

class Mxfp4 final : public DerivedRows {
 public:
  Mxfp4(const SafeTensor& blocks, const SafeTensor& scales, int64_t first, int64_t step)
      : DerivedRows(scales.shape.back() * kBlockBytes),
        blocks_file_(*blocks.file),
        blocks_offset_(blocks.offset),
        scales_(scales),
        row_blocks_(scales.shape.back()),
        first_(first),
        step_(step) {}

 private:
  static constexpr int64_t kBlockBytes = 17;
  static constexpr size_t kHalf = 16;  // bytes of elements, and elements of half a block

  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    const auto row_blocks = static_cast<size_t>(row_blocks_);
    std::string blocks(row_blocks * kHalf, '\0');
    std::string scales(row_blocks, '\0');
    for (int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<uint64_t>(first_ + (first + i) * step_);
      LLM_RETURN_IF_ERROR(
          blocks_file_.Read(blocks_offset_ + row * blocks.size(), blocks.size(), blocks.data()));
      LLM_RETURN_IF_ERROR(
          scales_.file->Read(scales_.offset + row * scales.size(), scales.size(), scales.data()));
      const char* const begin = dst;
      for (size_t block = 0; block < row_blocks; ++block) {
        *dst++ = scales[block];
        Reorder(reinterpret_cast<const uint8_t*>(&blocks[block * kHalf]),
                reinterpret_cast<uint8_t*>(dst));
        dst += kHalf;
      }
      LLM_RETURN_IF_ERROR(RefuseNanScales({.tensor = scales_.name,
                                           .format = WeightFormat::kMXFP4,
                                           .cols = row_blocks_ * 2 * static_cast<int64_t>(kHalf),
                                           .first = static_cast<int64_t>(row),
                                           .count = 1,
                                           .blocks = begin}));
    }
    return absl::OkStatus();
  }

  // A byte holds neighbours there (even low, odd high), and elements half a block apart here.
  static void Reorder(const uint8_t* from, uint8_t* to) {
    const auto element = [from](size_t i) {
      return static_cast<uint8_t>(i % 2 == 0 ? from[i / 2] & 0xF : from[i / 2] >> 4);
    };
    for (size_t i = 0; i < kHalf; ++i) {
      to[i] = static_cast<uint8_t>(element(i) | element(i + kHalf) << 4);
    }
  }

  const ModelFile& blocks_file_;
  const uint64_t blocks_offset_;
  const SafeTensor scales_;
  const int64_t row_blocks_;
  const int64_t first_;
  const int64_t step_;
};

}  // namespace

absl::Status DerivedRows::Read(uint64_t offset, uint64_t size, void* dst) const {
  if (size == 0) return absl::OkStatus();
  const uint64_t first = offset / row_bytes_;
  const uint64_t count = (offset + size - 1) / row_bytes_ + 1 - first;
  const auto read = [&](char* to) {
    return ReadRows(static_cast<int64_t>(first), static_cast<int64_t>(count), to);
  };
  if (offset % row_bytes_ == 0 && size % row_bytes_ == 0) return read(static_cast<char*>(dst));
  std::string rows(static_cast<size_t>(count * row_bytes_), '\0');
  LLM_RETURN_IF_ERROR(read(rows.data()));
  std::memcpy(dst, rows.data() + offset % row_bytes_, static_cast<size_t>(size));
  return absl::OkStatus();
}

std::shared_ptr<const DerivedBytes> OnePlus(const SafeTensor& tensor, WeightFormat format) {
  return std::make_shared<OnePlusVector>(tensor, format);
}

std::shared_ptr<const DerivedBytes> ViewOf(const SafeTensor& tensor, const TensorView& view) {
  return std::make_shared<ViewedRows>(tensor, view);
}

std::shared_ptr<const DerivedBytes> Mxfp4Rows(const SafeTensor& blocks, const SafeTensor& scales,
                                              int64_t first, int64_t step) {
  return std::make_shared<Mxfp4>(blocks, scales, first, step);
}

}  // namespace llm
