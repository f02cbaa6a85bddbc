// A model file that exists only in a test: metadata and tensors by hand.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "src/loader/weight_source.h"

namespace llm {

class FakeMetadata : public Metadata {
 public:
  using Value = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;

  void Set(const std::string& key, Value value) { values_[key] = std::move(value); }
  void Erase(const std::string& key) { values_.erase(key); }

  bool Has(absl::string_view key) const override { return values_.count(std::string(key)) != 0; }
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const override;
  absl::StatusOr<double> GetFloat(absl::string_view key) const override;
  absl::StatusOr<bool> GetBool(absl::string_view key) const override;
  absl::StatusOr<absl::string_view> GetString(absl::string_view key) const override;
  absl::StatusOr<std::vector<absl::string_view>> GetStrings(absl::string_view key) const override;
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const override;
  absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const override;
  std::vector<absl::string_view> Keys() const override;

 private:
  template <typename T>
  absl::StatusOr<T> Get(absl::string_view key) const;

  std::map<std::string, Value> values_;
};

class FakeWeightSource : public WeightSource {
 public:
  // `data` may be empty for tests that read the header only.
  void Add(const std::string& name, WeightFormat format, std::vector<int64_t> shape,
           std::vector<uint8_t> data = {});
  void Remove(const std::string& name);
  FakeMetadata& mutable_metadata() { return metadata_; }

  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* Find(absl::string_view name) const override;
  absl::Status Read(const TensorInfo& tensor, uint64_t offset, uint64_t size,
                    void* dst) const override;

 private:
  FakeMetadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::vector<uint8_t>> data_;
};

}  // namespace llm
