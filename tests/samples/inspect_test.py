#!/usr/bin/env python3
"""llm-inspect on a file whose contents are known. Usage: inspect_test.py PROGRAM MODEL LLM_BENCH"""
import json
import os
import subprocess

from tool_util import MODEL, OTHERS, ToolTest, main, run_well


def inspect(*flags):
    return json.loads(run_well(MODEL, "--json", *flags))


class InspectTest(ToolTest):
    def test_lists_what_the_file_holds(self):
        got = inspect()
        self.assertEqual(got["architecture"], "llama")
        self.assertEqual((got["num_layers"], got["vocab_size"], got["context_length"]), (2, 512, 512))
        self.assertEqual(got["metadata"]["llama.attention.head_count_kv"], "2")
        self.assertEqual(len(got["metadata"]), 26)
        self.assertEqual(len(got["tensors"]), 21)
        self.assertEqual(got["tensors"][0], {"name": "token_embd.weight", "type": "F32", "shape": [512, 64],
                                             "bytes": 131072, "offset": 13248})
        last = got["tensors"][-1]
        self.assertEqual(last["offset"] + last["bytes"], os.path.getsize(MODEL))

    def test_text_shows_the_same(self):
        text = run_well(MODEL, "--tensors", "--length", "64", "--memory", "64MiB")
        for part in ("llama, 2 layers", "tokenizer: gpt2 llama-bpe", "chat template: yes", "F32       21 tensors",
                     "blk.1.ffn_down.weight", "general.license = cc0-1.0", "plan:", "sequences of 64 tokens"):
            self.assertIn(part, text)

    def test_the_plan_is_what_the_open_then_takes(self):
        options = ["--max-step-tokens", "64", "--threads", "2"]
        done = subprocess.run([OTHERS[0], "--model", MODEL, "--tokens", "64", "--prompt-tokens", "8",
                               "--manual-drive", *options],
                              capture_output=True, text=True, check=True)
        bench = json.loads(done.stdout)
        # As bench_client.cc sizes its engine: 88 tokens, 32 and 256 to spare, in blocks of 16.
        plan = inspect(*options, "--kv-tokens", "376", "--max-sequences", "1")["plan"]
        self.assertEqual(plan["weights_bytes"], bench["weights_bytes"])
        self.assertEqual(plan["kv_bytes"] + plan["workspace_bytes"], bench["engine_bytes"])

    def test_as_many_sequences_fit_as_the_plan_lets_in(self):
        memory = 64 << 20
        fits = inspect("--length", "100", "--memory", "64MiB")["fits"]
        self.assertEqual(set(fits), {"f32", "f16", "bf16", "fp8", "int8"})
        for dtype, fit in fits.items():
            sequences = fit["sequences"]
            totals = []
            for count in (sequences, sequences + 1):
                plan = inspect("--kv-dtype", dtype, "--max-sequences", count, "--kv-tokens", count * 128,
                               "--max-context-tokens", "100")["plan"]
                totals.append(sum(plan[part + "_bytes"] for part in ("weights", "tokenizer", "kv", "workspace")))
            self.assertEqual(totals[0], fit["total_bytes"])
            self.assertLessEqual(totals[0], memory)
            self.assertGreater(totals[1], memory)
        self.assertGreater(fits["fp8"]["sequences"], fits["f16"]["sequences"])
        self.assertGreater(fits["f16"]["sequences"], fits["f32"]["sequences"])

    def test_nothing_fits_where_the_weights_do_not(self):
        for fit in inspect("--length", "100", "--memory", "1KiB")["fits"].values():
            self.assertEqual(fit["sequences"], 0)

    def test_mistakes_are_named(self):
        self.check_failure([], 2, "usage: llm-inspect")
        self.check_failure([MODEL, MODEL], 2, "one argument too many")
        self.check_failure([MODEL, "--length", "5"], 2, "--length and --memory go together")
        self.check_failure([MODEL, "--length", "5", "--memory", "much"], 2, "--memory: not a number of bytes")
        self.check_failure([MODEL, "--block-size", "17"], 1, "block_size")
        self.check_failure(["/no/such/model"], 1, "NOT_FOUND")


if __name__ == "__main__":
    main()
