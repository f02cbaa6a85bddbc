// Answers as the real sources do, errors included.
#include "tests/support/fake_weight_source.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace llm {

template <typename T>
absl::StatusOr<T> FakeMetadata::Get(absl::string_view key) const {
  const auto it = values_.find(std::string(key));
  if (it == values_.end()) return absl::NotFoundError(absl::StrCat("key ", key, ": missing"));
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("key ", key, ": another type"));
  return *value;
}

absl::StatusOr<int64_t> FakeMetadata::GetInt(absl::string_view key) const {
  return Get<int64_t>(key);
}
absl::StatusOr<double> FakeMetadata::GetFloat(absl::string_view key) const {
  return Get<double>(key);
}
absl::StatusOr<bool> FakeMetadata::GetBool(absl::string_view key) const { return Get<bool>(key); }

absl::StatusOr<absl::string_view> FakeMetadata::GetString(absl::string_view key) const {
  const absl::StatusOr<std::string> value = Get<std::string>(key);
  if (!value.ok()) return value.status();
  return std::get<std::string>(values_.at(std::string(key)));
}

absl::StatusOr<std::vector<absl::string_view>> FakeMetadata::GetStrings(
    absl::string_view key) const {
  return absl::NotFoundError(absl::StrCat("key ", key, ": missing"));
}
absl::StatusOr<std::vector<int64_t>> FakeMetadata::GetInts(absl::string_view key) const {
  return Get<std::vector<int64_t>>(key);
}
absl::StatusOr<std::vector<float>> FakeMetadata::GetFloats(absl::string_view key) const {
  return absl::NotFoundError(absl::StrCat("key ", key, ": missing"));
}

std::vector<absl::string_view> FakeMetadata::Keys() const {
  std::vector<absl::string_view> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

void FakeWeightSource::Add(const std::string& name, WeightFormat format, std::vector<int64_t> shape,
                           std::vector<uint8_t> data) {
  Remove(name);
  int64_t bytes = RowBytes(GetWeightFormat(format), shape.back());
  for (size_t i = 0; i + 1 < shape.size(); ++i) bytes *= shape[i];
  tensors_.push_back({.name = name,
                      .format = format,
                      .shape = std::move(shape),
                      .file_offset = 0,
                      .size_bytes = static_cast<uint64_t>(bytes)});
  data_[name] = std::move(data);
}

void FakeWeightSource::Remove(const std::string& name) {
  std::erase_if(tensors_, [&](const TensorInfo& tensor) { return tensor.name == name; });
  data_.erase(name);
}

const TensorInfo* FakeWeightSource::Find(absl::string_view name) const {
  for (const TensorInfo& tensor : tensors_) {
    if (name == tensor.name) return &tensor;
  }
  return nullptr;
}

absl::Status FakeWeightSource::Read(const TensorInfo& tensor, uint64_t offset, uint64_t size,
                                    void* dst) const {
  const std::vector<uint8_t>& data = data_.at(tensor.name);
  if (offset > data.size() || size > data.size() - offset) {
    return absl::DataLossError(
        absl::StrCat("tensor ", tensor.name, ": no ", size, " bytes at ", offset));
  }
  if (size > 0) std::memcpy(dst, data.data() + offset, size);
  return absl::OkStatus();
}

}  // namespace llm
