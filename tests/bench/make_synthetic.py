#!/usr/bin/env python3
"""Writes a GGUF of the shape of a 1B Llama with seeded random weights. Needs the PyPI packages gguf and numpy.

Usage: make_synthetic.py --type q4_0|q8_0|f16|bf16 [--seed S] [--layers N] OUTPUT
Speed does not depend on the values, but they must be sane: their size keeps hidden states near 1, without infinities.
Quantised blocks are drawn directly, which takes seconds where quantising a billion floats takes minutes.
"""
import argparse
import math
import os

import gguf
import numpy as np

HIDDEN, HEADS, KV_HEADS, FFN, VOCAB, CONTEXT = 2048, 32, 8, 8192, 32000, 32768
HEAD_DIM = HIDDEN // HEADS
TYPES = {"q4_0": gguf.GGMLQuantizationType.Q4_0, "q8_0": gguf.GGMLQuantizationType.Q8_0,
         "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16}


def random_floats(rng, rows, columns, mantissa_bits, exponent_bias):
    """Bits of f16 or bf16: random sign and mantissa, one exponent, so |x| in [2^e, 2^(e+1)) near 1/sqrt(columns)."""
    exponent = -math.ceil(math.log2(math.sqrt(columns)))
    bits = rng.integers(0, 1 << 16, (rows, columns), np.uint16)
    bits &= np.uint16(0x8000 | ((1 << mantissa_bits) - 1))
    bits |= np.uint16((exponent + exponent_bias) << mantissa_bits)
    return bits.view(np.uint8)


def random_blocks(rng, rows, columns, quant_bytes, deviation):
    """Blocks of 32 with an f16 scale in front: 16 bytes of nibbles (Q4_0) or 32 of int8 (Q8_0)."""
    block = np.dtype([("scale", "<f2"), ("quants", np.uint8, quant_bytes)])
    blocks = np.empty((rows, columns // 32), block)
    scale = 1.0 / (deviation * math.sqrt(columns))
    blocks["scale"] = scale * (0.75 + 0.5 * rng.random(blocks.shape, np.float32))
    blocks["quants"] = rng.integers(0, 256, (*blocks.shape, quant_bytes), np.uint8)
    return blocks.view(np.uint8).reshape(rows, -1)


def random_weights(rng, kind, rows, columns):
    if kind == "q4_0":
        return random_blocks(rng, rows, columns, 16, 4.6)  # of uniform -8..7
    if kind == "q8_0":
        return random_blocks(rng, rows, columns, 32, 73.9)  # of uniform -128..127
    return random_floats(rng, rows, columns, *((10, 15) if kind == "f16" else (7, 127)))


def matrices(num_layers):
    """(name, rows, columns) in file order; the head is the embedding."""
    kv = KV_HEADS * HEAD_DIM
    yield "token_embd.weight", VOCAB, HIDDEN
    for layer in range(num_layers):
        for name, rows, columns in (("attn_q", HIDDEN, HIDDEN), ("attn_k", kv, HIDDEN), ("attn_v", kv, HIDDEN),
                                    ("attn_output", HIDDEN, HIDDEN), ("ffn_gate", FFN, HIDDEN), ("ffn_up", FFN, HIDDEN),
                                    ("ffn_down", HIDDEN, FFN)):
            yield f"blk.{layer}.{name}.weight", rows, columns


def norms(num_layers):
    return ["output_norm.weight"] + [f"blk.{layer}.{name}.weight" for layer in range(num_layers)
                                     for name in ("attn_norm", "ffn_norm")]


def byte_alphabet():
    """The printable character that byte-level BPE uses for each byte: printable Latin-1 itself, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(0x100 + others.index(byte)) for byte in range(256)]


def add_tokenizer(writer):
    """Two control tokens, the 256 bytes, then pairs of bytes with their merges until the vocabulary is full."""
    alphabet = byte_alphabet()
    pairs = [(first, second) for first in alphabet for second in alphabet][:VOCAB - 2 - 256]
    tokens = ["<s>", "</s>", *alphabet, *[first + second for first, second in pairs]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.NORMAL] * (VOCAB - 2))
    writer.add_token_merges([f"{first} {second}" for first, second in pairs])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(True)


def add_metadata(writer, kind, num_layers):
    writer.add_name(f"synthetic Llama 1B shape {kind}")
    writer.add_license("cc0-1.0")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(num_layers)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    writer.add_file_type({"q4_0": gguf.LlamaFileType.MOSTLY_Q4_0, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
                          "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16}[kind])
    writer.add_quantization_version(2)
    add_tokenizer(writer)


def write_model(path, kind, num_layers, seed):
    """Tensors are drawn and written one by one: the biggest file is 2.2 GB and need not fit in memory."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    add_metadata(writer, kind, num_layers)
    for name in norms(num_layers):
        writer.add_tensor_info(name, (HIDDEN,), np.dtype(np.float32), 4 * HIDDEN)
    for name, rows, columns in matrices(num_layers):
        shape = gguf.quant_shape_to_byte_shape((rows, columns), TYPES[kind])
        writer.add_tensor_info(name, shape, np.dtype(np.uint8), math.prod(shape), TYPES[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _ in norms(num_layers):
        writer.write_tensor_data(np.ones(HIDDEN, np.float32))
    for _, rows, columns in matrices(num_layers):
        writer.write_tensor_data(random_weights(rng, kind, rows, columns))
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", choices=TYPES, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("output")
    arguments = parser.parse_args()
    partial = arguments.output + ".partial"
    write_model(partial, arguments.type, arguments.layers, arguments.seed)
    os.replace(partial, arguments.output)


if __name__ == "__main__":
    main()
