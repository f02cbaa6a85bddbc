// Numbers are written as they lie in memory: little-endian, which gguf_reader.cc asserts.
#include "src/loader/gguf_writer.h"

#include "src/base/math.h"

namespace llm {
namespace {

constexpr uint32_t kVersion = 3;

template <typename T>
void Append(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(absl::string_view text, std::string* out) {
  Append(uint64_t{text.size()}, out);
  out->append(text.data(), text.size());
}

}  // namespace

void GgufWriter::BeginValue(absl::string_view key, GgufType type) {
  ++num_values_;
  AppendText(key, &values_);
  Append(type, &values_);
}

void GgufWriter::BeginArray(absl::string_view key, GgufType type, uint64_t count) {
  BeginValue(key, GgufType::kArray);
  Append(type, &values_);
  Append(count, &values_);
}

void GgufWriter::AddInt(absl::string_view key, int64_t value) {
  BeginValue(key, GgufType::kInt64);
  Append(value, &values_);
}

void GgufWriter::AddFloat(absl::string_view key, double value) {
  BeginValue(key, GgufType::kFloat64);
  Append(value, &values_);
}

void GgufWriter::AddBool(absl::string_view key, bool value) {
  BeginValue(key, GgufType::kBool);
  Append(uint8_t{value}, &values_);
}

void GgufWriter::AddString(absl::string_view key, absl::string_view value) {
  BeginValue(key, GgufType::kString);
  AppendText(value, &values_);
}

void GgufWriter::AddInts(absl::string_view key, absl::Span<const int32_t> values) {
  BeginArray(key, GgufType::kInt32, values.size());
  for (const int32_t value : values) Append(value, &values_);
}

void GgufWriter::AddFloats(absl::string_view key, absl::Span<const float> values) {
  BeginArray(key, GgufType::kFloat32, values.size());
  for (const float value : values) Append(value, &values_);
}

void GgufWriter::AddStrings(absl::string_view key, absl::Span<const std::string> values) {
  BeginArray(key, GgufType::kString, values.size());
  for (const std::string& value : values) AppendText(value, &values_);
}

void GgufWriter::CopyValues(absl::string_view values, uint64_t count) {
  num_values_ += count;
  values_.append(values.data(), values.size());
}

void GgufWriter::AddTensor(absl::string_view name, WeightFormat format,
                           absl::Span<const int64_t> shape, uint64_t offset) {
  ++num_tensors_;
  AppendText(name, &tensors_);
  Append(static_cast<uint32_t>(shape.size()), &tensors_);
  for (size_t i = shape.size(); i-- > 0;) Append(static_cast<uint64_t>(shape[i]), &tensors_);
  Append(static_cast<uint32_t>(format), &tensors_);
  Append(offset, &tensors_);
}

std::string GgufWriter::Finish() const {
  std::string header = "GGUF";
  Append(kVersion, &header);
  Append(num_tensors_, &header);
  Append(num_values_, &header);
  header += values_;
  header += tensors_;
  header.resize(RoundUp<size_t>(header.size(), kAlignment));
  return header;
}

}  // namespace llm
