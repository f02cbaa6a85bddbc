"""peer_ctranslate2.py MODEL.gguf THREADS KIND PROMPT TOKENS STREAMS CACHE: one row on CTranslate2, int8; JSON on stdout.

A Llama in GGUF is dequantised and written in CTranslate2's format (once, under CACHE), which it quantises to int8 by row.
"""
import json
import pathlib
import random
import sys
import time

import ctranslate2
import gguf
import numpy
from ctranslate2.specs import TransformerDecoderModelSpec, common_spec

PREFIX = "llama."
REPEATS = 2  # the best counts


def _field(reader, name):
    field = reader.fields.get(PREFIX + name)
    return None if field is None else field.parts[field.data[0]][0].item()


def _fill_layer(spec, get):
    spec.self_attention.layer_norm.gamma = get("attn_norm")
    spec.ffn.layer_norm.gamma = get("ffn_norm")
    spec.self_attention.linear[0].weight = numpy.concatenate([get(f"attn_{part}") for part in "qkv"])
    spec.self_attention.linear[1].weight = get("attn_output")
    spec.ffn.linear_0.weight = get("ffn_gate")
    spec.ffn.linear_0_noact.weight = get("ffn_up")
    spec.ffn.linear_1.weight = get("ffn_down")


def convert(path, folder):
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    get = lambda name: numpy.ascontiguousarray(
        gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type), dtype=numpy.float32)
    heads, kv_heads = _field(reader, "attention.head_count"), _field(reader, "attention.head_count_kv")
    spec = TransformerDecoderModelSpec.from_config(
        _field(reader, "block_count"), heads, activation=common_spec.Activation.SWISH, pre_norm=True, ffn_glu=True,
        rms_norm=True, rotary_dim=0, rotary_interleave=True,  # as GGUF permutes queries and keys
        rotary_base=_field(reader, "rope.freq_base") or 10000.0, num_heads_kv=None if kv_heads == heads else kv_heads)
    spec.decoder.scale_embeddings = False
    spec.decoder.embeddings.weight = get("token_embd.weight")
    spec.decoder.layer_norm.gamma = get("output_norm.weight")
    spec.decoder.projection.weight = get("output.weight" if "output.weight" in tensors else "token_embd.weight")
    for index, layer in enumerate(spec.decoder.layer):
        _fill_layer(layer, lambda part, index=index: get(f"blk.{index}.{part}.weight"))
    vocabulary = [f"{index}" for index in range(len(spec.decoder.embeddings.weight))]  # only ids are used
    spec.register_vocabulary(vocabulary)
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = vocabulary[0]
    spec.config.layer_norm_epsilon = _field(reader, "attention.layer_norm_rms_epsilon")
    spec.validate()
    spec.optimize(quantization="int8")
    folder.mkdir(parents=True)
    spec.save(str(folder))
    return folder


def seconds(generator, prompts, tokens):
    begin = time.perf_counter()
    answers = generator.generate_batch(prompts, min_length=tokens, max_length=tokens, sampling_topk=1, beam_size=1,
                                       include_prompt_in_result=False, cache_static_prompt=False)
    spent = time.perf_counter() - begin
    if any(len(answer.sequences_ids[0]) < tokens for answer in answers):
        sys.exit("a stream ended early")
    return spent


def main():
    path, threads, kind, prompt, tokens, streams, cache = sys.argv[1:]
    folder = pathlib.Path(cache) / f"ctranslate2-{pathlib.Path(path).stem}"
    if not (folder / "model.bin").exists():
        convert(path, folder)
    generator = ctranslate2.Generator(str(folder), device="cpu", compute_type="int8", inter_threads=1,
                                      intra_threads=int(threads))
    vocabulary_size = len(json.loads((folder / "vocabulary.json").read_text()))
    random.seed(1)
    prompts = [[str(random.randrange(1000, vocabulary_size)) for _ in range(int(prompt))] for _ in range(int(streams))]
    seconds(generator, [prompts[0][:8]], 2)  # warm-up

    def measure():
        if kind == "prefill":
            return int(prompt) / seconds(generator, prompts, 1)
        first, all_tokens = seconds(generator, prompts, 1), seconds(generator, prompts, int(tokens))
        return len(prompts) * (int(tokens) - 1) / (all_tokens - first)

    print(json.dumps({"tokens_per_s": max(measure() for _ in range(REPEATS))}))


if __name__ == "__main__":
    main()
