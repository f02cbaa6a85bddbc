"""peer_openvino.py MODEL.gguf THREADS KIND PROMPT TOKENS STREAMS CACHE: one row on OpenVINO GenAI; JSON on stdout.

It opens GGUF itself, in the formats and architectures that it knows (CACHE is not used). Weights, activations and KV are
in the types that it chooses.
"""
import json
import random
import sys
import time

import numpy
import openvino
import openvino_genai

REPEATS = 2  # the best counts
FIRST_ORDINARY, LAST_ORDINARY = 1000, 30000  # ids of every model of the comparison


def seconds(pipeline, prompts, tokens):
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = config.min_new_tokens = tokens
    config.ignore_eos = True
    config.do_sample = False
    ids = openvino.Tensor(numpy.array(prompts, dtype=numpy.int64))
    mask = openvino.Tensor(numpy.ones((len(prompts), len(prompts[0])), dtype=numpy.int64))
    begin = time.perf_counter()
    answer = pipeline.generate(openvino_genai.TokenizedInputs(ids, mask), config)
    spent = time.perf_counter() - begin
    if any(len(ids) < tokens for ids in answer.tokens):
        sys.exit("a stream ended early")
    return spent


def main():
    path, threads, kind, prompt, tokens, streams, _ = sys.argv[1:]
    pipeline = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=int(threads))
    random.seed(1)
    draw = lambda: [[random.randrange(FIRST_ORDINARY, LAST_ORDINARY) for _ in range(int(prompt))]
                    for _ in range(int(streams))]
    seconds(pipeline, [draw()[0][:8]], 2)  # warm-up

    def measure():  # other prompts each time: what it keeps of earlier ones must not help
        if kind == "prefill":
            return int(prompt) / seconds(pipeline, draw(), 1)
        first, all_tokens = seconds(pipeline, draw(), 1), seconds(pipeline, draw(), int(tokens))
        return int(streams) * (int(tokens) - 1) / (all_tokens - first)

    print(json.dumps({"tokens_per_s": max(measure() for _ in range(REPEATS))}))


if __name__ == "__main__":
    main()
