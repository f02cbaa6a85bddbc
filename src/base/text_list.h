// A list of texts that lie one behind the other in memory, read in order: an array of strings of a
// file's header as it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"

namespace llm {

// Borrows the bytes: each text has its length in front, in 64 bits at any alignment. A vocabulary
// has hundreds of thousands of texts, and a list of views of them would take longer to write than
// the texts to read.
class TextList {
 public:
  using value_type = absl::string_view;

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = absl::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const absl::string_view*;
    using reference = absl::string_view;

    const_iterator() = default;
    explicit const_iterator(const char* at) : at_(at) {}
    absl::string_view operator*() const { return {at_ + sizeof(uint64_t), size()}; }
    const_iterator& operator++() {
      at_ += sizeof(uint64_t) + size();
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_; }
    bool operator!=(const const_iterator& other) const { return at_ != other.at_; }

   private:
    size_t size() const {
      uint64_t size;
      std::memcpy(&size, at_, sizeof(size));
      return static_cast<size_t>(size);
    }

    const char* at_ = nullptr;
  };
  using iterator = const_iterator;

  TextList() = default;
  // REQUIRES: `bytes` are `size` texts with their lengths, and nothing else.
  TextList(absl::string_view bytes, size_t size) : bytes_(bytes), size_(size) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const_iterator begin() const { return const_iterator(bytes_.data()); }
  const_iterator end() const { return const_iterator(bytes_.data() + bytes_.size()); }
  size_t num_text_bytes() const { return bytes_.size() - size_ * sizeof(uint64_t); }

 private:
  absl::string_view bytes_;
  size_t size_ = 0;
};

// Bytes for a TextList of these texts.
template <typename Texts>
std::string JoinForTextList(const Texts& texts) {
  std::string bytes;
  for (const auto& text : texts) {
    const uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes.append(text.data(), text.size());
  }
  return bytes;
}

}  // namespace llm
