// The number is changed where it stands, in the width that the file has for it.
#include "src/model/file_type.h"

#include <algorithm>
#include <optional>

namespace llm {
namespace {

constexpr absl::string_view kKey = "general.file_type";

// ggml's numbers of the formats that one number tells; K-quants have several, by their mixture.
std::optional<uint8_t> NumberOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return 0;
    case WeightFormat::kF16:
      return 1;
    case WeightFormat::kQ4_0:
      return 2;
    case WeightFormat::kQ4_1:
      return 3;
    case WeightFormat::kQ8_0:
      return 7;
    case WeightFormat::kQ5_0:
      return 8;
    case WeightFormat::kQ5_1:
      return 9;
    case WeightFormat::kBF16:
      return 32;
    default:
      return std::nullopt;
  }
}

bool IsInteger(GgufType type) {
  return GgufTypeBytes(type) > 0 && type != GgufType::kFloat32 && type != GgufType::kFloat64 &&
         type != GgufType::kBool;
}

}  // namespace

WeightFormat WeightCount::Most() const {
  const auto most = std::max_element(
      counts_.begin(), counts_.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  return most == counts_.end() ? WeightFormat::kF32 : most->first;
}

GgufValues WithFileType(const GgufContents& contents, WeightFormat was, WeightFormat is) {
  const HeaderBytes& header = contents.metadata->bytes();
  GgufValues values = {std::string(header.View(contents.values)),
                       contents.metadata->entries().size()};
  if (was == is) return values;
  for (const GgufEntry& entry : contents.metadata->entries()) {
    if (header.View(entry.key) != kKey) continue;
    const size_t at = entry.value.offset - contents.values.offset;
    const std::optional<uint8_t> number = NumberOf(is);
    if (number.has_value() && IsInteger(entry.type)) {
      std::fill_n(values.bytes.begin() + static_cast<std::ptrdiff_t>(at), entry.value.size, '\0');
      values.bytes[at] = static_cast<char>(*number);
    } else {
      const size_t begin = entry.key.offset - sizeof(uint64_t) - contents.values.offset;
      values.bytes.erase(begin, at + entry.value.size - begin);
      --values.count;
    }
    break;  // no key is there twice
  }
  return values;
}

}  // namespace llm
