// Two accesses are ordered when a barrier that both threads passed lies between them.
#include "tests/cuda_on_cpu/shared_shadow.h"

#include "absl/strings/str_cat.h"
#include "tests/cuda_on_cpu/block.h"

namespace llm::cuda_on_cpu {

void SharedShadow::Reset(size_t bytes) { cells_.assign(bytes, Cell{}); }

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

std::string SharedShadow::Read(const Moment& now, size_t begin, size_t bytes) {
  const int warp = now.thread / kWarpSize;
  for (size_t i = begin; i < begin + bytes; ++i) {
    Cell& cell = cells_[i];
    if (cell.copier != kNobody) {
      return absl::StrCat("reads shared byte ", i, ", into which thread ", cell.copier,
                          " still copies");
    }
    if (cell.writer == kNobody) return absl::StrCat("reads shared byte ", i, ", never written");
    if (WriteIsUnordered(cell, now)) {
      return absl::StrCat("reads shared byte ", i, ", which thread ", cell.writer,
                          " wrote with no barrier in between");
    }
    const bool first = cell.reader == kNobody || cell.read_block_epoch != now.block_epoch;
    if (first) {
      cell.reader = now.thread;
      cell.reader_warp = warp;
    } else {
      if (cell.reader != now.thread) cell.reader = kSeveral;
      if (cell.reader_warp != warp) cell.reader_warp = kSeveral;
    }
    cell.read_block_epoch = now.block_epoch;
    cell.read_warp_epoch = now.warp_epoch;
  }
  return "";
}

std::string SharedShadow::Write(const Moment& now, size_t begin, size_t bytes) {
  for (size_t i = begin; i < begin + bytes; ++i) {
    Cell& cell = cells_[i];
    if (cell.copier != kNobody) {
      return absl::StrCat("writes shared byte ", i, ", into which thread ", cell.copier,
                          " still copies");
    }
    if (WriteIsUnordered(cell, now)) {
      return absl::StrCat("writes shared byte ", i, ", which thread ", cell.writer,
                          " wrote with no barrier in between");
    }
    if (ReadIsUnordered(cell, now)) {
      return absl::StrCat("writes shared byte ", i,
                          ", which another thread read with no barrier in between");
    }
    cell.writer = now.thread;
    cell.write_block_epoch = now.block_epoch;
    cell.write_warp_epoch = now.warp_epoch;
  }
  return "";
}

std::string SharedShadow::BeginCopy(const Moment& now, size_t begin, size_t bytes) {
  std::string fault = Write(now, begin, bytes);
  for (size_t i = begin; i < begin + bytes; ++i) cells_[i].copier = now.thread;
  return fault;
}

std::string SharedShadow::EndCopy(const Moment& now, size_t begin, size_t bytes) {
  for (size_t i = begin; i < begin + bytes; ++i) cells_[i].copier = kNobody;
  return Write(now, begin, bytes);
}

}  // namespace llm::cuda_on_cpu
