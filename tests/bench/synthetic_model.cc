// Writes a GGUF file with layers of the shape of Llama 3 8B and random weights, for machines that
// have no model and no network. Only its speed means anything.
//
// Usage: synthetic_model OUT [--type bf16|fp8|q4_k|q4_z] [--layers N (8)] [--tiny]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/quant/f8_e4m3.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q4_z.h"
#include "src/base/math.h"
#include "src/loader/gguf_writer.h"
#include "src/tensor/float_convert.h"

namespace llm::bench {
namespace {

struct Shape {
  int64_t hidden = 4096, ffn = 14336, head_dim = 128, heads = 32, kv_heads = 8;
  int64_t vocab = 128256, layers = 8;
};

constexpr Shape kTiny = {256, 256, 64, 4, 2, 600, 1};

struct Type {
  const char* name;
  WeightFormat format;
};
constexpr Type kTypes[] = {{"bf16", WeightFormat::kBF16},
                           {"fp8", WeightFormat::kF8_E4M3},
                           {"q4_k", WeightFormat::kQ4_K},
                           {"q4_z", WeightFormat::kQ4_Z}};

struct Matrix {
  std::string name;
  int64_t rows, cols;
};

// The head is the embedding.
std::vector<Matrix> Matrices(const Shape& s) {
  std::vector<Matrix> all = {{"token_embd.weight", s.vocab, s.hidden}};
  const int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    for (const Matrix& m : {Matrix{"attn_q", q, s.hidden}, Matrix{"attn_k", kv, s.hidden},
                            Matrix{"attn_v", kv, s.hidden}, Matrix{"attn_output", s.hidden, q},
                            Matrix{"ffn_gate", s.ffn, s.hidden}, Matrix{"ffn_up", s.ffn, s.hidden},
                            Matrix{"ffn_down", s.hidden, s.ffn}}) {
      all.push_back({absl::StrCat("blk.", layer, ".", m.name, ".weight"), m.rows, m.cols});
    }
  }
  return all;
}

std::vector<std::string> Norms(const Shape& s) {
  std::vector<std::string> names = {"output_norm.weight"};
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    names.push_back(absl::StrCat("blk.", layer, ".attn_norm.weight"));
    names.push_back(absl::StrCat("blk.", layer, ".ffn_norm.weight"));
  }
  return names;
}

// The character that byte-level BPE has for a byte, in UTF-8.
std::string CharOf(int byte, int* next) {
  const bool printable = (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte != 0xad);
  const int code = printable ? byte : 0x100 + (*next)++;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// Two control tokens, the bytes, the one merge that a tokenizer must have, then words that nothing
// merges to.
void AddTokenizer(const Shape& s, GgufWriter* writer) {
  std::vector<std::string> tokens = {"<s>", "</s>"};
  int next = 0;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(CharOf(byte, &next));
  tokens.push_back("ww");
  while (static_cast<int64_t>(tokens.size()) < s.vocab) {
    tokens.push_back(absl::StrCat("w", tokens.size()));
  }
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = types[1] = 3;  // control
  writer->AddString("tokenizer.ggml.model", "gpt2");
  writer->AddString("tokenizer.ggml.pre", "llama-bpe");
  writer->AddStrings("tokenizer.ggml.tokens", tokens);
  writer->AddInts("tokenizer.ggml.token_type", types);
  writer->AddStrings("tokenizer.ggml.merges", {"w w"});
  writer->AddInt("tokenizer.ggml.bos_token_id", 0);
  writer->AddInt("tokenizer.ggml.eos_token_id", 1);
}

std::string Header(const Shape& s, WeightFormat format) {
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddString("general.name", "synthetic");
  writer.AddInt("llama.context_length", 32768);
  writer.AddInt("llama.embedding_length", s.hidden);
  writer.AddInt("llama.block_count", s.layers);
  writer.AddInt("llama.feed_forward_length", s.ffn);
  writer.AddInt("llama.attention.head_count", s.heads);
  writer.AddInt("llama.attention.head_count_kv", s.kv_heads);
  writer.AddInt("llama.rope.dimension_count", s.head_dim);
  writer.AddFloat("llama.rope.freq_base", 500000);
  writer.AddFloat("llama.attention.layer_norm_rms_epsilon", 1e-5);
  writer.AddInt("llama.vocab_size", s.vocab);
  AddTokenizer(s, &writer);
  uint64_t offset = 0;
  const auto add = [&](const std::string& name, WeightFormat type, std::vector<int64_t> shape) {
    writer.AddTensor(name, type, shape, offset);
    const int64_t rows = shape.size() == 1 ? 1 : shape[0];
    const int64_t bytes = rows * RowBytes(GetWeightFormat(type), shape.back());
    offset = RoundUp<uint64_t>(offset + static_cast<uint64_t>(bytes), GgufWriter::kAlignment);
  };
  for (const std::string& name : Norms(s)) add(name, WeightFormat::kF32, {s.hidden});
  for (const Matrix& m : Matrices(s)) add(m.name, format, {m.rows, m.cols});
  return writer.Finish();
}

// Any bytes are quants; what scales them keeps hidden states near 1.
void SetScales(WeightFormat format, int64_t cols, std::vector<uint8_t>* bytes) {
  const float root = std::sqrt(static_cast<float>(cols));
  const auto each = [&](auto block, const auto& set) {
    for (size_t i = 0; i + sizeof(block) <= bytes->size(); i += sizeof(block)) {
      std::memcpy(&block, &(*bytes)[i], sizeof(block));
      set(&block);
      std::memcpy(&(*bytes)[i], &block, sizeof(block));
    }
  };
  switch (format) {
    case WeightFormat::kBF16: {
      const uint16_t exponent = F32ToBF16(1 / root) & 0x7f80;
      each(uint16_t{}, [&](uint16_t* bits) { *bits = (*bits & 0x807f) | exponent; });
      return;
    }
    case WeightFormat::kF8_E4M3:
      each(F8_E4M3{}, [&](F8_E4M3* block) {
        const float scale = 1 / root;
        std::memcpy(&block->scale, &scale, sizeof(scale));
        for (uint8_t& code : block->codes) code &= 0xbf;  // below 2
      });
      return;
    case WeightFormat::kQ4_K:
      each(Q4_K{}, [&](Q4_K* block) {
        const uint16_t scales[2] = {F32ToF16(1 / (262 * root)), F32ToF16(8 / (262 * root))};
        std::memcpy(block, scales, sizeof(scales));  // of scales, of minimums
      });
      return;
    default:
      each(Q4_Z{}, [&](Q4_Z* block) {
        block->SetScale(F32ToF16(1 / (4.6f * root)));
        block->zero = 8;
      });
  }
}

class Output {
 public:
  explicit Output(const char* path) : file_(std::fopen(path, "wb")) {}
  ~Output() {
    if (file_ != nullptr) std::fclose(file_);
  }
  void Write(const void* data, size_t bytes) {
    ok_ = ok_ && file_ != nullptr && std::fwrite(data, 1, bytes, file_) == bytes;
    written_ += bytes;
  }
  void Pad() {
    const char zeros[GgufWriter::kAlignment] = {};
    Write(zeros, RoundUp<size_t>(written_, GgufWriter::kAlignment) - written_);
  }
  bool Close() {
    ok_ = file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) == 0 && ok_;
    return ok_;
  }

 private:
  std::FILE* file_;
  size_t written_ = 0;
  bool ok_ = true;
};

// Some rows again and again: drawing 8 G of weights would take longer than measuring them.
void WriteMatrix(const Matrix& m, WeightFormat format, std::mt19937_64* random, Output* out) {
  const auto row_bytes = static_cast<size_t>(RowBytes(GetWeightFormat(format), m.cols));
  const auto rows = static_cast<size_t>(m.rows);
  const size_t drawn = std::min<size_t>(rows, 256);
  std::vector<uint8_t> bytes(drawn * row_bytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>((*random)() >> 56);
  SetScales(format, m.cols, &bytes);
  for (size_t row = 0; row < rows; row += drawn) {
    out->Write(bytes.data(), std::min(drawn, rows - row) * row_bytes);
  }
  out->Pad();
}

bool WriteModel(const char* path, const Shape& s, WeightFormat format) {
  std::mt19937_64 random(1);
  Output out(path);
  const std::string header = Header(s, format);
  out.Write(header.data(), header.size());
  const std::vector<float> ones(static_cast<size_t>(s.hidden), 1);
  for (size_t i = 0; i < Norms(s).size(); ++i) {
    out.Write(ones.data(), ones.size() * sizeof(float));
    out.Pad();
  }
  for (const Matrix& m : Matrices(s)) WriteMatrix(m, format, &random, &out);
  return out.Close();
}

int Main(int argc, char** argv) {
  Shape shape;
  WeightFormat format = WeightFormat::kBF16;
  const char* path = nullptr;
  bool known = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--tiny") {
      shape = kTiny;
    } else if (argument == "--layers") {
      shape.layers = std::atoi(value.c_str());
      ++i;
    } else if (argument == "--type") {
      known = false;
      for (const Type& type : kTypes) {
        if (value != type.name) continue;
        format = type.format;
        known = true;
      }
      ++i;
    } else {
      path = argv[i];
    }
  }
  if (path == nullptr || !known || shape.layers < 1 || shape.layers > 1024) {
    std::fprintf(stderr, "usage: synthetic_model OUT [--type T] [--layers N] [--tiny]\n");
    return 2;
  }
  if (WriteModel(path, shape, format)) return 0;
  std::fprintf(stderr, "synthetic_model: %s: cannot be written\n", path);
  return 1;
}

}  // namespace
}  // namespace llm::bench

int main(int argc, char** argv) { return llm::bench::Main(argc, argv); }
