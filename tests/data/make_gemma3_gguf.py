#!/usr/bin/env python3
"""Writes the tiny Gemma 3 of ../shared/data/models/gemma3_text as GGUF files, in F16 and with Q4_1 linear layers.

Usage: make_gemma3_gguf.py MODEL_FOLDER OUTPUT_FOLDER   (needs gguf and safetensors from PyPI)
The files are committed; this script says where they come from. Gemma's norms store w with 1 + w meant; GGUF stores 1 + w.
"""
import json
import pathlib
import sys

import gguf
import numpy as np

LAYER_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "post_feedforward_layernorm": "post_ffw_norm",
}


def read_safetensors(path):
    """BF16 and F32 tensors as f32 arrays (safetensors' numpy reader has no bfloat16)."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, info in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        raw = data[8 + size + begin:8 + size + end]
        if info["dtype"] == "BF16":
            array = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            array = np.frombuffer(raw, np.float32)
        tensors[name] = array.reshape(info["shape"])
    return tensors


def gguf_name(name):
    name = name.removeprefix("model.").removesuffix(".weight")
    if name in ("embed_tokens", "norm"):
        return {"embed_tokens": "token_embd", "norm": "output_norm"}[name] + ".weight"
    _, layer, part = name.split(".", 2)
    return f"blk.{layer}.{LAYER_NAMES[part]}.weight"


def add_metadata(writer, config, tokenizer, template):
    add = writer
    add.add_name("tiny gemma3_text")
    add.add_license("cc0-1.0")
    add.add_context_length(config["max_position_embeddings"])
    add.add_embedding_length(config["hidden_size"])
    add.add_block_count(config["num_hidden_layers"])
    add.add_feed_forward_length(config["intermediate_size"])
    add.add_head_count(config["num_attention_heads"])
    add.add_head_count_kv(config["num_key_value_heads"])
    add.add_key_length(config["head_dim"])
    add.add_value_length(config["head_dim"])
    add.add_layer_norm_rms_eps(config["rms_norm_eps"])
    add.add_rope_freq_base(config["rope_theta"])
    add.add_float32("gemma3.rope.freq_base_swa", config["rope_local_base_freq"])
    add.add_sliding_window(config["sliding_window"])
    add.add_uint32("gemma3.attention.sliding_window_pattern", config["sliding_window_pattern"])
    add.add_float32("gemma3.attention.scale", config["query_pre_attn_scalar"] ** -0.5)
    vocab = tokenizer["model"]["vocab"]
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    by_id = {i: text for text, i in vocab.items()} | special
    add.add_tokenizer_model("gpt2")
    add.add_tokenizer_pre("gpt-2")
    add.add_token_list([by_id[i] for i in range(config["vocab_size"])])
    add.add_token_types([gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL
                         for i in range(config["vocab_size"])])
    merges = tokenizer["model"]["merges"]
    add.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    add.add_bos_token_id(config["bos_token_id"])
    add.add_eos_token_id(config["eos_token_id"])
    add.add_add_bos_token(False)
    add.add_chat_template(template)


def main():
    folder, output = map(pathlib.Path, sys.argv[1:3])
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    tensors = read_safetensors(folder / "model.safetensors")
    for label, linear in (("F16", gguf.GGMLQuantizationType.F16), ("Q4_1", gguf.GGMLQuantizationType.Q4_1),
                          ("F32", gguf.GGMLQuantizationType.F32)):
        writer = gguf.GGUFWriter(output / f"gemma3_text-{label}.gguf", "gemma3")
        add_metadata(writer, config, tokenizer, template)
        for name, array in tensors.items():
            if name == "lm_head.weight":  # tied
                continue
            if array.ndim == 1:
                writer.add_tensor(gguf_name(name), array + np.float32(1))
            else:
                writer.add_tensor(gguf_name(name), gguf.quants.quantize(array, linear), raw_dtype=linear)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


if __name__ == "__main__":
    main()
