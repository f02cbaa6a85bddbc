// The rows of attention: a row is a query token and a head. Those of one sequence that share a kv
// head follow each other, tokens before heads; a block has some tiles of 16 of them.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"

namespace llm {

// What a block works on.
struct AttentionRows {
  const int32_t* blocks;  // of the sequence
  int kv_head;
  int first;        // of the block's rows, in the sequence
  int count;        // rows of the block
  int first_token;  // the sequence's first of the batch
  int first_end;    // keys that it sees end here
  int first_key;    // that any of the block's rows sees
  int end_key;
};

struct __align__(16) AttentionRow {
  int token;  // -1: none, and no keys
  int head;
  int first_key;  // the row sees [first_key, end_key)
  int end_key;
};

__device__ __forceinline__ int FirstKey(const AttentionArgs& args, int end_key) {
  return args.window > 0 && end_key > args.window ? end_key - args.window : 0;
}

// The last sequence of which first(sequence) <= place, where first never falls.
template <typename First>
__device__ __forceinline__ int FindSequence(const AttentionArgs& args, int place,
                                            const First& first) {
  int begin = 0;
  int end = args.num_sequences;
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    if (first(middle) <= place) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return begin;
}

// A sequence's tiles of rows begin at this place: each has as many places as its rows can need, so
// that none must be counted. Of `count` sequences, the number of places.
__host__ __device__ __forceinline__ int64_t FirstPlace(int64_t tokens_before, int group,
                                                       int tile_rows, int sequence) {
  return tokens_before * group / tile_rows + sequence;
}

__device__ __forceinline__ AttentionRow FindRow(const AttentionArgs& args,
                                                const AttentionRows& rows, int row) {
  if (row >= rows.count) return {-1, 0, 0, 0};
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int token = (rows.first + row) / group;
  const int end_key = rows.first_end + token;
  return {rows.first_token + token, rows.kv_head * group + (rows.first + row) % group,
          FirstKey(args, end_key), end_key};
}

// With count 0, nothing is left to do at this place.
__device__ __forceinline__ AttentionRows FindRows(const AttentionArgs& args, int place, int kv_head,
                                                  int tile_rows) {
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int sequence = FindSequence(
      args, place, [&](int s) { return FirstPlace(args.query_start[s], group, tile_rows, s); });
  const int first_token = args.query_start[sequence];
  const int num_tokens = args.query_start[sequence + 1] - first_token;
  AttentionRows rows = {};
  rows.blocks = args.block_table + int64_t{sequence} * args.max_blocks;
  rows.kv_head = kv_head;
  rows.first =
      (place - static_cast<int>(FirstPlace(first_token, group, tile_rows, sequence))) * tile_rows;
  rows.count = max(min(tile_rows, num_tokens * group - rows.first), 0);
  rows.first_token = first_token;
  rows.first_end = args.context_lens[sequence] - num_tokens + 1;
  rows.first_key = FirstKey(args, rows.first_end + rows.first / group);
  rows.end_key = rows.first_end + (rows.first + rows.count - 1) / group;
  return rows;
}

// Of a block; with partials, of its split alone. None are left when count is 0.
__device__ __forceinline__ AttentionRows RowsOfBlock(const AttentionArgs& args, int tile_rows) {
  // The last rows of a prompt see the most keys: they begin first.
  const int place = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  AttentionRows rows = FindRows(args, place, static_cast<int>(blockIdx.y), tile_rows);
  if (args.partials != nullptr) {  // a block a split
    const int first_key = static_cast<int>(blockIdx.z) * kSplitKeys;
    rows.first_key = max(rows.first_key, first_key);
    rows.end_key = min(rows.end_key, first_key + kSplitKeys);
    if (rows.first_key >= rows.end_key) rows.count = 0;
  }
  return rows;
}

inline dim3 GridOf(const AttentionArgs& args, int tile_rows) {
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int64_t places = FirstPlace(args.num_tokens, group, tile_rows, args.num_sequences);
  return {static_cast<unsigned>(places), static_cast<unsigned>(args.kv.num_kv_heads),
          args.partials != nullptr ? static_cast<unsigned>(args.num_splits) : 1};
}

}  // namespace llm
