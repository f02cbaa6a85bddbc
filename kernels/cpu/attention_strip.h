// Strips of keys and values as they are stored, and decoded copies of their tiles.
//
// Include it only from sources that are compiled per ISA.
#pragma once

#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/kv_layout.h"

namespace llm::LLM_CPU_ISA {

// Two decoded tiles of the usual head sizes, one of the largest: 32 KiB of the first-level cache.
constexpr int kDecodedFloats = kAttentionMaxHeadDim * kKeyTile;

// 64 keys that start at position `key`, a multiple of 64; tiles [begin, end) of them are seen.
struct Strip {
  int key;
  int begin;
  int end;
  TileSet keys;
  TileSet values;
  const std::byte* scales[kStripTiles];  // of keys; those of values follow
};

LLM_SIMD Strip FindStrip(const AttentionBlock& b, int key, int first, int last) {
  const size_t token_bytes = b.values_offset / static_cast<size_t>(b.block_size);
  Strip strip = {};
  strip.key = key;
  strip.begin = first > key ? (first - key) / kKeyTile : 0;
  strip.end = last - key < kStripKeys ? (last - key) / kKeyTile + 1 : kStripTiles;
  for (int t = strip.begin; t < strip.end; ++t) {
    const int at = key + t * kKeyTile;
    const std::byte* region =
        b.base + static_cast<size_t>(b.blocks[at / b.block_size]) * b.block_bytes;
    const size_t offset = static_cast<size_t>(at % b.block_size);
    const size_t bytes = offset * token_bytes;
    strip.keys.at[t] = region + bytes;
    strip.values.at[t] = region + b.values_offset + bytes;
    strip.scales[t] = region + b.key_scales_offset + 2 * offset;
  }
  return strip;
}

// What to ask the memory for while `strip` is computed: the next one, or where there is none,
// `strip` itself, which is at hand.
LLM_SIMD Strip FindAhead(const AttentionBlock& b, const Strip& strip, int last) {
  Strip ahead = strip;
  const int key = strip.key + kStripKeys;
  if (key > last) return ahead;
  const Strip next = FindStrip(b, key, key, last);
  for (int t = next.begin; t < next.end; ++t) {
    ahead.keys.at[t] = next.keys.at[t];
    ahead.values.at[t] = next.values.at[t];
    if (b.token_scales) __builtin_prefetch(next.scales[t]);
  }
  return ahead;
}

LLM_SIMD F32x16 LoadScales(const std::byte* scales) {
  return LoadF16(reinterpret_cast<const uint16_t*>(scales));
}

// Calls decode(t, copy) for tiles [strip.begin, strip.end), as many at once as fit, and
// use(copies, begin, end) for those.
template <typename DecodeFn, typename UseFn>
LLM_SIMD void ForDecoded(const AttentionBlock& b, const Strip& strip, float* decoded,
                         DecodeFn decode, UseFn use) {
  const int count = 2 * b.head_dim * kKeyTile <= kDecodedFloats ? 2 : 1;
  for (int begin = strip.begin; begin < strip.end; begin += count) {
    const int end = begin + count < strip.end ? begin + count : strip.end;
    TileSet copies = {};
    for (int t = begin; t < end; ++t) {
      float* out = decoded + (t - begin) * b.head_dim * kKeyTile;
      decode(t, out);
      copies.at[t] = reinterpret_cast<const std::byte*>(out);
    }
    use(copies, begin, end);
  }
}

template <typename Form, typename UseFn>
LLM_SIMD void DecodeTiles(const AttentionBlock& b, const Strip& strip, const TileSet& tiles,
                          const TileSet& ahead, float* decoded, UseFn use) {
  const auto decode = [&](int t, float* out) {
    for (int i = 0; i < b.head_dim; ++i) {
      Store(out + i * kKeyTile, Form::At(tiles.at[t] + i * Form::kBytes));
      PrefetchVector<Form>(ahead.at[t], i);
    }
  };
  ForDecoded(b, strip, decoded, decode, use);
}

// The low or the high nibbles of 16 bytes, as kI4 means them.
LLM_SIMD F32x16 Nibbles(const std::byte* p, int shift) {
  uint8_t codes[16];
  for (int i = 0; i < 16; ++i)
    codes[i] = static_cast<uint8_t>(static_cast<int>(p[i]) >> shift & 0xf);
  return Sub(LoadU8(codes), Set(8.0f));
}

// A tile of int4 keys: each row of 16 bytes has two dimensions, and a group has 16 such rows.
LLM_SIMD void DecodeKeys4(const AttentionBlock& b, const Strip& strip, int t, float* out) {
  F32x16 scales = Zero();
  for (int i = 0; i < b.head_dim / 2; ++i) {
    if (2 * i % kKvGroup == 0)
      scales = LoadScales(strip.scales[t] + 2 * i / kKvGroup * 2 * b.block_size);
    const std::byte* row = strip.keys.at[t] + i * kKeyTile;
    Store(out + 2 * i * kKeyTile, Mul(Nibbles(row, 0), scales));
    Store(out + (2 * i + 1) * kKeyTile, Mul(Nibbles(row, 4), scales));
  }
}

// A tile of int4 values: each group of a token is 16 bytes.
LLM_SIMD void DecodeValues4(const AttentionBlock& b, const Strip& strip, int t, float* out) {
  const size_t value_scales = b.value_scales_offset - b.key_scales_offset;
  for (int g = 0; g < b.head_dim / kKvGroup; ++g) {
    float scales[kKeyTile];
    Store(scales, LoadScales(strip.scales[t] + value_scales + 2 * g * b.block_size));
    for (int lane = 0; lane < kKeyTile; ++lane) {
      const std::byte* row = strip.values.at[t] + lane * (b.head_dim / 2) + g * 16;
      float* at = out + lane * b.head_dim + g * kKvGroup;
      Store(at, Mul(Nibbles(row, 0), Set(scales[lane])));
      Store(at + 16, Mul(Nibbles(row, 4), Set(scales[lane])));
    }
  }
}

}  // namespace llm::LLM_CPU_ISA
