// Two accesses are ordered when a barrier that both threads passed lies between them.
#include "tests/cuda_on_cpu/shared_shadow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/cuda_on_cpu/block.h"

namespace llm::cuda_on_cpu {
namespace {

constexpr size_t kWord = 4;

}  // namespace

void SharedShadow::Reset(size_t bytes) {
  words_.assign(bytes / kWord + 1, Cell{});
  bytes_.resize(kWord * words_.size());
}

void SharedShadow::Split(size_t word) {
  std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(kWord * word), kWord, words_[word]);
  words_[word].is_split = true;
}

template <typename Visit>
std::string SharedShadow::VisitCells(size_t begin, size_t bytes, const Visit& visit) {
  const size_t end = begin + bytes;
  for (size_t i = begin; i < end;) {
    const size_t word = i / kWord;
    const char* fault = nullptr;
    size_t next = i + 1;
    if (!words_[word].is_split && i % kWord == 0 && end - i >= kWord) {
      fault = visit(&words_[word]);
      next = i + kWord;
    } else {
      if (!words_[word].is_split) Split(word);
      fault = visit(&bytes_[i]);
    }
    if (fault != nullptr) {
      const Cell& cell = words_[word].is_split ? bytes_[i] : words_[word];
      return absl::StrCat("shared byte ", i, fault, " (last written by thread ", cell.writer, ")");
    }
    i = next;
  }
  return "";
}

bool SharedShadow::WriteIsUnordered(const Cell& cell, const Moment& now) {
  if (cell.writer == kNobody || cell.writer == now.thread) return false;
  if (cell.write_block_epoch != now.block_epoch) return false;
  return cell.writer / kWarpSize != now.thread / kWarpSize ||
         cell.write_warp_epoch == now.warp_epoch;
}

bool SharedShadow::ReadIsUnordered(const Cell& cell, const Moment& now) {
  if (cell.reader == kNobody || cell.reader == now.thread) return false;
  if (cell.read_block_epoch != now.block_epoch) return false;
  return cell.reader_warp != now.thread / kWarpSize || cell.read_warp_epoch == now.warp_epoch;
}

const char* SharedShadow::ReadCell(const Moment& now, Cell* cell) {
  if (cell->copier != kNobody) return " is read while a copy is on its way";
  if (cell->writer == kNobody) return " is read, never written";
  if (WriteIsUnordered(*cell, now)) return " is read after a write with no barrier in between";
  const int warp = now.thread / kWarpSize;
  // Earlier reads that a barrier orders before this one are forgotten.
  const bool ordered = cell->read_block_epoch != now.block_epoch ||
                       (cell->reader_warp == warp && cell->read_warp_epoch != now.warp_epoch);
  if (cell->reader == kNobody || ordered) {
    cell->reader = now.thread;
    cell->reader_warp = warp;
  } else {
    if (cell->reader != now.thread) cell->reader = kSeveral;
    if (cell->reader_warp != warp) cell->reader_warp = kSeveral;
  }
  cell->read_block_epoch = now.block_epoch;
  cell->read_warp_epoch = now.warp_epoch;
  return nullptr;
}

const char* SharedShadow::WriteCell(const Moment& now, Cell* cell) {
  if (cell->copier != kNobody) return " is written while a copy is on its way";
  if (WriteIsUnordered(*cell, now)) return " is written after a write with no barrier in between";
  if (ReadIsUnordered(*cell, now)) return " is written after a read with no barrier in between";
  cell->writer = now.thread;
  cell->write_block_epoch = now.block_epoch;
  cell->write_warp_epoch = now.warp_epoch;
  return nullptr;
}

std::string SharedShadow::Read(const Moment& now, size_t begin, size_t bytes) {
  return VisitCells(begin, bytes, [&](Cell* cell) { return ReadCell(now, cell); });
}

std::string SharedShadow::Write(const Moment& now, size_t begin, size_t bytes) {
  return VisitCells(begin, bytes, [&](Cell* cell) { return WriteCell(now, cell); });
}

std::string SharedShadow::BeginCopy(const Moment& now, size_t begin, size_t bytes) {
  return VisitCells(begin, bytes, [&](Cell* cell) {
    const char* fault = WriteCell(now, cell);
    cell->copier = now.thread;
    return fault;
  });
}

std::string SharedShadow::EndCopy(const Moment& now, size_t begin, size_t bytes) {
  return VisitCells(begin, bytes, [&](Cell* cell) {
    cell->copier = kNobody;
    return WriteCell(now, cell);
  });
}

}  // namespace llm::cuda_on_cpu
