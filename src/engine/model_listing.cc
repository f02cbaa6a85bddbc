// Long values are cut or counted: a vocabulary and its merges would take tens of megabytes.
#include "src/engine/model_listing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

constexpr size_t kMaxValueBytes = 64 << 10;
constexpr size_t kMaxElements = 16;

std::string Text(absl::string_view text) {
  if (text.size() <= kMaxValueBytes) return ReplaceInvalidUtf8(text);
  text = text.substr(0, kMaxValueBytes);
  // A character that the cut goes through is left out; what is invalid before it is replaced.
  for (int bytes = 0; bytes < 3 && (text.back() & 0xC0) == 0x80; ++bytes) text.remove_suffix(1);
  if ((text.back() & 0x80) != 0) text.remove_suffix(1);
  return ReplaceInvalidUtf8(text);
}

std::string Count(const ArrayInfo& array) { return absl::StrCat(array.size, " ", array.elements); }

template <typename Values, typename Formatter>
std::string Array(const Values& values, const char* elements, Formatter&& formatter) {
  if (values.size() > kMaxElements) return Count({.elements = elements, .size = values.size()});
  return absl::StrCat("[", absl::StrJoin(values, ", ", formatter), "]");
}

void AppendQuoted(std::string* out, absl::string_view text) {
  absl::StrAppend(out, "\"", Text(text), "\"");
}

// Each getter answers for values of its own type alone.
std::string Value(const Metadata& metadata, absl::string_view key) {
  const std::optional<ArrayInfo> array = metadata.DescribeArray(key);
  if (array.has_value() && array->size > kMaxElements) return Count(*array);
  if (const auto text = metadata.GetString(key); text.ok()) return Text(*text);
  if (const auto number = metadata.GetInt(key); number.ok()) return absl::StrCat(*number);
  if (const auto on = metadata.GetBool(key); on.ok()) return *on ? "true" : "false";
  if (const auto number = metadata.GetFloat(key); number.ok()) return absl::StrCat(*number);
  if (const auto texts = metadata.GetStrings(key); texts.ok()) {
    return Array(*texts, "strings", &AppendQuoted);
  }
  const auto plain = absl::AlphaNumFormatter();
  if (const auto numbers = metadata.GetInts(key); numbers.ok()) {
    return Array(*numbers, "integers", plain);
  }
  if (const auto numbers = metadata.GetFloats(key); numbers.ok()) {
    return Array(*numbers, "floats", plain);
  }
  return "(a value that this library does not read)";
}

ListedTensor List(const TensorInfo& tensor) {
  ListedTensor listed;
  listed.name = Text(tensor.name);
  listed.type = TypeName(tensor);
  listed.num_dims = static_cast<int>(std::min(tensor.shape.size(), listed.shape.size()));
  for (int i = 0; i < listed.num_dims; ++i) {
    const auto at = static_cast<size_t>(i);
    listed.shape[at] = static_cast<uint64_t>(tensor.shape[at]);
  }
  listed.file_offset = tensor.file_offset;
  listed.size_bytes = tensor.size_bytes;
  return listed;
}

}  // namespace

ModelListing ListModel(const WeightSource& source) {
  ModelListing listing;
  listing.tensors.reserve(source.tensors().size());
  for (const TensorInfo& tensor : source.tensors()) listing.tensors.push_back(List(tensor));
  for (const absl::string_view key : source.metadata().Keys()) {
    listing.metadata.push_back({Text(key), Value(source.metadata(), key)});
  }
  return listing;
}

}  // namespace llm
