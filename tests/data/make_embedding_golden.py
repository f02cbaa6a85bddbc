#!/usr/bin/env python3
"""Hidden states of the tiny Llama, computed in float64 by numpy from the GGUF file alone.

    pip install numpy gguf; python3 make_embedding_golden.py gguf/llama_h64-F32

Reads X.gguf and the prompts of X.golden.json (by transformers), writes X.embedding.json: for each
prompt the state of the last token after the final norm, and the mean over all tokens. The same
states give logits through the head: `logit_diff` is how far they are from transformers' ones, which
the golden file holds with six digits, so that the states are as good as checked by transformers too.
"""
import json
import sys

import gguf
import numpy as np


def norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def rope(x, base):
    """Rotates pairs (2i, 2i + 1) of [tokens, heads, head_dim]."""
    tokens, _, dim = x.shape
    angles = np.outer(np.arange(tokens), base ** (-np.arange(0, dim, 2) / dim))[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    out[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return out


def attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[2])
    scores = np.where(np.tril(np.ones(scores.shape[1:], dtype=bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v).reshape(q.shape[0], -1)


def main(base):
    reader = gguf.GGUFReader(base + ".gguf")
    field = lambda name: reader.fields["llama." + name].contents()
    weights = {
        t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)
        for t in reader.tensors
    }
    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    eps, rope_base = field("attention.layer_norm_rms_epsilon"), field("rope.freq_base")

    def forward(ids):
        x = weights["token_embd.weight"][ids]
        for layer in range(field("block_count")):
            w = lambda name: weights[f"blk.{layer}.{name}.weight"]
            y = norm(x, w("attn_norm"), eps)
            split = lambda name, n: (y @ w(name).T).reshape(len(ids), n, -1)
            q, k = rope(split("attn_q", heads), rope_base), rope(split("attn_k", kv_heads), rope_base)
            x = x + attention(q, k, split("attn_v", kv_heads)) @ w("attn_output").T
            y = norm(x, w("ffn_norm"), eps)
            gate = y @ w("ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w("ffn_up").T)) @ w("ffn_down").T
        return norm(x, weights["output_norm.weight"], eps)

    golden = json.load(open(base + ".golden.json"))
    head = weights.get("output.weight", weights["token_embd.weight"])
    prompts, diff = [], 0.0
    for prompt in golden["prompts"]:
        states = forward(prompt["ids"])
        diff = max(diff, np.abs(states[-1] @ head.T - np.array(prompt["last_logits"])).max())
        digits = lambda row: [float(f"{value:.9g}") for value in row]
        prompts.append({"ids": prompt["ids"], "last": digits(states[-1]),
                        "mean": digits(states.mean(axis=0))})
    with open(base + ".embedding.json", "w") as out:
        json.dump({"logit_diff": float(f"{diff:.3g}"), "prompts": prompts}, out)
        out.write("\n")
    print("logits differ from transformers' by", diff)


if __name__ == "__main__":
    main(sys.argv[1])
