#!/usr/bin/env python3
"""llm-eval against another implementation's log-probabilities. Usage: eval_test.py PROGRAM MODEL"""
import json
import math
import os
import pathlib
import tempfile
import unittest

from tool_util import MODEL, ToolTest, main, run_well

DATA = pathlib.Path(MODEL).parent
SMOLLM2 = os.environ.get("INLAY_SMOLLM2", "")


def evaluate(model, ids, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "ids.json").write_text(json.dumps(ids))
        run_well(model, "--ids", path / "ids.json", "--json", path / "out.json", *flags)
        return json.loads((path / "out.json").read_text())


class EvalTest(ToolTest):
    def test_nll_is_the_goldens_of_the_second_half(self):
        for prompt in json.loads((DATA / "llama_h64-F32.golden.json").read_text())["prompts"]:
            ids, logprobs = prompt["ids"], prompt["next_logprob"]
            got = evaluate(MODEL, ids, "--context", len(ids), "--kv-dtype", "f32")
            scored = logprobs[len(ids) // 2 - 1:]
            self.assertEqual(got["scored"], len(scored))
            self.assertAlmostEqual(got["base"]["mean_nll"], -sum(scored) / len(scored), delta=1e-4)
            self.assertAlmostEqual(got["base"]["perplexity"], math.exp(got["base"]["mean_nll"]), delta=1e-4)
            self.assertIsNone(got["base"]["standard_error"])

    def test_windows_do_not_overlap_and_each_counts_alike(self):
        ids = [(7 * i) % 500 + 3 for i in range(35)]
        whole = evaluate(MODEL, ids, "--context", 10)
        self.assertEqual((whole["windows"], whole["scored"]), (3, 15))
        alone = [evaluate(MODEL, ids[begin:begin + 10], "--context", 10)["base"]["mean_nll"] for begin in (0, 10, 20)]
        self.assertEqual(whole["base"]["window_mean_nll"], alone)
        self.assertEqual(evaluate(MODEL, ids, "--context", 10, "--windows", 2)["base"]["window_mean_nll"], alone[:2])

    def test_a_configuration_does_not_differ_from_itself(self):
        same = evaluate(MODEL, list(range(5, 45)), "--context", 20, "--against", "kv-dtype=f16")
        self.assertEqual((same["kl_mean"], same["top1_agreement"]), (0, 1))
        self.assertEqual(same["base"]["perplexity"], same["against"]["perplexity"])

    def test_other_kv_and_other_weights_differ(self):
        model = DATA / "llama_h64-Q4_0.gguf"
        other = evaluate(MODEL, list(range(5, 45)), "--context", 20, "--against",
                         f"model={model},kv-dtype=fp8,float-activations")
        self.assertGreater(other["kl_mean"], 0)
        self.assertGreaterEqual(other["kl_p99"], other["kl_mean"])
        self.assertIn("fp8, f32 activations", other["against"]["configuration"])
        self.assertIn("f16, default activations", other["base"]["configuration"])
        alone = evaluate(model, list(range(5, 45)), "--context", 20, "--kv-dtype", "fp8", "--float-activations")
        self.assertEqual(alone["base"]["perplexity"], other["against"]["perplexity"])

    def test_a_text_is_tokenized(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("The quick brown fox jumps over the lazy dog. " * 8)
            file.flush()
            text = run_well(MODEL, "--text", file.name, "--context", 16, "--windows", 3)
        self.assertIn("3 windows of 16 tokens, 24 scored", text)

    def test_a_table_has_a_row_for_each_weights_and_kv_dtype(self):
        ids = list(range(5, 85))
        model = DATA / "llama_h64-Q4_0.gguf"
        question = {"question": "Which?", "choices": ["The quick", "brown fox", "jumps"], "answer": 2}
        with tempfile.TemporaryDirectory() as folder:
            choices, markdown = pathlib.Path(folder) / "choices.jsonl", pathlib.Path(folder) / "table.md"
            choices.write_text(json.dumps(question) + "\n" + json.dumps(question | {"answer": 0}) + "\n")
            got = evaluate(MODEL, ids, "--context", 40, "--kv-dtypes", "f32,fp8", "--float-activations", "--weights",
                           f"model={model}", "--choices", choices, "--markdown", markdown)
            lines = markdown.read_text().splitlines()
            evaluate(MODEL, ids, "--context", 40, "--kv-dtypes", "f16", "--no-speed", "--markdown", markdown)
            self.assertEqual([line.count("|") for line in markdown.read_text().splitlines()[2:]], [9] * 4)
        self.assertEqual([line.count("|") for line in lines[2:]], [12] * 7)
        self.assertEqual((got["windows"], got["context"], got["questions"]), (2, 40, 2))
        rows = got["rows"]
        self.assertEqual([row["kv_dtype"] for row in rows], ["f32", "fp8"] * 2)
        self.assertEqual([row["weights"] for row in rows], ["F32, float activations"] * 2 + [f"model={model}"] * 2)
        self.assertEqual((rows[0]["kl_mean"], rows[0]["top1_agreement"], rows[0]["picks_alike"]), (0, 1, 1))
        self.assertEqual(rows[0]["mean_nll"], got["base"]["mean_nll"])
        self.assertEqual(got["base"]["accuracy"], 0.5)  # the same pick is right once
        self.assertLess(0, rows[1]["kl_mean"])
        self.assertLess(rows[1]["kl_mean"], rows[2]["kl_mean"])
        self.assertAlmostEqual(rows[0]["bytes_per_weight"], 4, delta=0.2)
        self.assertLess(rows[2]["bytes_per_weight"], 1.5)
        self.assertGreater(rows[1]["sequences"], 3 * rows[0]["sequences"])
        self.assertGreater(rows[1]["decode_tokens_per_s"], 0)
        other = evaluate(MODEL, ids, "--context", 40, "--float-activations", "--kv-dtype", "f32", "--against",
                         f"model={model},kv-dtype=fp8")
        self.assertEqual(other["kl_mean"], rows[3]["kl_mean"])

    def test_mistakes_are_named(self):
        usage = "usage: llm-eval"
        self.check_failure([], 2, usage)
        self.check_failure([MODEL], 2, "exactly one of --text, --ids")
        self.check_failure([MODEL, "--text", "a", "--context", "1"], 2, "--context")
        self.check_failure([MODEL, "--text", "a", "--against", "kv-dtype=f64"], 2, "--against: --kv-dtype: unknown: f64")
        self.check_failure([MODEL, "--text", "a", "--against", "colour=red"], 2, "--against: unknown: colour=red")
        self.check_failure([MODEL, "--text", "a", "--kv-dtypes", "f16,f64"], 2, "--kv-dtypes: --kv-dtype: unknown: f64")
        self.check_failure([MODEL, "--text", "a", "--weights", "x=1"], 2, "--weights: unknown: x=1")
        self.check_failure([MODEL, "--text", "a", "--choices", "b"], 2, "--choices goes with --weights or --kv-dtypes")
        self.check_failure([MODEL, "--text", "a", "--kv-dtypes", "f16", "--against", "kv-dtype=f16"], 2, "use --base")
        self.check_failure([MODEL, "--text", "/no/such/file"], 1, "cannot read /no/such/file")
        self.check_failure([MODEL, "--text", DATA, "--context", "16"], 1, "cannot read")
        self.check_failure(["/no/such/model", "--text", "a"], 1, "NOT_FOUND")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("[1, 2, x]")
            file.flush()
            self.check_failure([MODEL, "--ids", file.name], 1, "not a token id: x")
            file.seek(0)
            file.write("[1, 2, 3]")
            file.flush()
            self.check_failure([MODEL, "--ids", file.name], 1, "the text has 3 tokens: 0 windows of 512")

    @unittest.skipUnless(SMOLLM2, "INLAY_SMOLLM2 does not give the model's path")
    def test_smollm2_gives_the_goldens_of_its_first_windows(self):
        # mean NLL of windows 0 and 1 by a float32 implementation (transformers) on the same ids.
        ids = json.loads((DATA.parent / "text/perplexity_ids.json").read_text())["smollm2"]
        got = evaluate(SMOLLM2, ids, "--context", 512, "--windows", 2, "--kv-dtype", "f32", "--float-activations")
        for mean, golden in zip(got["base"]["window_mean_nll"], GOLDEN_SMOLLM2):
            self.assertAlmostEqual(mean, golden, delta=0.003)


GOLDEN_SMOLLM2 = (3.663167, 3.301457)

if __name__ == "__main__":
    main()
