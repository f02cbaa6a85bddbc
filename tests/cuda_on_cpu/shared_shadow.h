// Who touched each byte of a block's shared memory last, to find accesses that no barrier orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace llm::cuda_on_cpu {

// When a thread does something: barriers of the block, and of its warp, that it has passed.
struct Moment {
  int thread = 0;
  uint32_t block_epoch = 0;
  uint32_t warp_epoch = 0;
};

class SharedShadow {
 public:
  // All bytes untouched: what a block finds.
  void Reset(size_t bytes);

  // Each returns an empty text, or what is wrong. REQUIRES: the range lies within Reset's size.
  std::string Read(const Moment& now, size_t begin, size_t bytes);
  std::string Write(const Moment& now, size_t begin, size_t bytes);
  // A copy is on its way: its bytes may change at any time until EndCopy.
  std::string BeginCopy(const Moment& now, size_t begin, size_t bytes);
  std::string EndCopy(const Moment& now, size_t begin, size_t bytes);

 private:
  static constexpr int kNobody = -1;
  static constexpr int kSeveral = -2;  // lanes of one warp

  struct Cell {
    int writer = kNobody;
    uint32_t write_block_epoch = 0;
    uint32_t write_warp_epoch = 0;
    int reader = kNobody;  // or kSeveral
    int reader_warp = 0;   // or kSeveral
    uint32_t read_block_epoch = 0;
    uint32_t read_warp_epoch = 0;
    int copier = kNobody;
    bool is_split = false;
  };

  static bool WriteIsUnordered(const Cell& cell, const Moment& now);
  static bool ReadIsUnordered(const Cell& cell, const Moment& now);
  static const char* ReadCell(const Moment& now, Cell* cell);
  static const char* WriteCell(const Moment& now, Cell* cell);

  // Calls visit(cell) for each cell of the range until one gives a text: what is wrong there.
  template <typename Visit>
  std::string VisitCells(size_t begin, size_t bytes, const Visit& visit);
  void Split(size_t word);

  // A cell for four bytes as long as they are touched together, else one for each of them.
  std::vector<Cell> words_;
  std::vector<Cell> bytes_;  // of words that are split
};

}  // namespace llm::cuda_on_cpu
