// The order is computed whenever it is read: a few thousand numbers, which need not be kept.
#include "src/model/hub_input_order.h"

#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_companion.h"

namespace llm {
namespace {

class NaturalVector final : public DerivedBytes {
 public:
  explicit NaturalVector(int64_t inputs) : inputs_(static_cast<size_t>(inputs)) {}

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    std::vector<float> values(inputs_);
    std::iota(values.begin(), values.end(), 0.0f);
    std::memcpy(dst, reinterpret_cast<const char*>(values.data()) + offset,
                static_cast<size_t>(size));
    return absl::OkStatus();
  }

 private:
  const size_t inputs_;
};

class OrderVector final : public DerivedBytes {
 public:
  OrderVector(const SafeTensor& tensor, int64_t groups) : tensor_(tensor), groups_(groups) {}

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    LLM_ASSIGN_OR_RETURN(const std::vector<int32_t> order, OrderOfInputs(tensor_, groups_));
    const std::vector<float> values(order.begin(), order.end());  // exact: below 2^24
    std::memcpy(dst, reinterpret_cast<const char*>(values.data()) + offset,
                static_cast<size_t>(size));
    return absl::OkStatus();
  }

 private:
  const SafeTensor tensor_;
  const int64_t groups_;
};

absl::Status WrongGroup(const SafeTensor& tensor, size_t input, int32_t group, int64_t groups) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(tensor.name), ": input ",
                                                 input, " is of group ", group, ", there are ",
                                                 groups));
}

}  // namespace

absl::StatusOr<bool> CheckGroupsOfInputs(const SafeTensor& tensor, int64_t inputs, int64_t groups) {
  constexpr int64_t kMaxInputs = int64_t{1} << 24;  // an f32 holds their numbers
  LLM_RETURN_IF_ERROR(CheckCompanion(tensor, SafeType::kI32, {inputs}));
  if (inputs > kMaxInputs) return WrongCompanion(tensor, "fewer inputs");
  LLM_ASSIGN_OR_RETURN(const std::vector<int32_t> group_of, ReadAll<int32_t>(tensor));
  std::vector<int64_t> sizes(static_cast<size_t>(groups));
  bool ascending = true;
  for (size_t i = 0; i < group_of.size(); ++i) {
    if (group_of[i] < 0 || group_of[i] >= groups) return WrongGroup(tensor, i, group_of[i], groups);
    ++sizes[static_cast<size_t>(group_of[i])];
    if (i > 0 && group_of[i] < group_of[i - 1]) ascending = false;
  }
  for (size_t group = 0; group < sizes.size(); ++group) {
    if (sizes[group] == inputs / groups) continue;
    return absl::UnimplementedError(absl::StrCat("tensor ", Printable(tensor.name), ": group ",
                                                 group, " has ", sizes[group], " inputs, expected ",
                                                 inputs / groups));
  }
  return ascending;
}

absl::StatusOr<std::vector<int32_t>> OrderOfInputs(const SafeTensor& tensor, int64_t groups) {
  LLM_ASSIGN_OR_RETURN(const std::vector<int32_t> group_of, ReadAll<int32_t>(tensor));
  const size_t group_size = group_of.size() / static_cast<size_t>(groups);
  std::vector<size_t> next(static_cast<size_t>(groups));
  for (size_t group = 0; group < next.size(); ++group) next[group] = group * group_size;
  std::vector<int32_t> order(group_of.size());
  for (size_t i = 0; i < group_of.size(); ++i) {
    const auto group = static_cast<size_t>(group_of[i]);
    // A file that changed since it was checked.
    if (group >= next.size() || next[group] >= order.size()) {
      return WrongGroup(tensor, i, group_of[i], groups);
    }
    order[next[group]++] = static_cast<int32_t>(i);
  }
  return order;
}

std::shared_ptr<const DerivedBytes> InputOrder(const SafeTensor& tensor, int64_t groups) {
  return std::make_shared<OrderVector>(tensor, groups);
}

std::shared_ptr<const DerivedBytes> NaturalOrder(int64_t inputs) {
  return std::make_shared<NaturalVector>(inputs);
}

}  // namespace llm
