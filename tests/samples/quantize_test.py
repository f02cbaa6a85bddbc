#!/usr/bin/env python3
"""llm-quantize: packs and GGUF files in fewer bits. Usage: quantize_test.py PROGRAM MODEL LLM_INSPECT LLM_GENERATE"""
import json
import os
import subprocess
import tempfile

from tool_util import MODEL, OTHERS, ToolTest, main, run_well


def types(model, *flags):
    done = subprocess.run([OTHERS[0], model, "--json", "--tensors", *flags], capture_output=True, text=True, check=True)
    return {tensor["name"]: tensor["type"] for tensor in json.loads(done.stdout)["tensors"]}


def answer(model, *flags):
    done = subprocess.run([OTHERS[1], "--model", model, "--json", "--prompt", "The quick", "--max-tokens", "8",
                           "--ignore-eos", "--logprobs", "3", *flags], capture_output=True, text=True, check=True)
    got = json.loads(done.stdout)
    return got["ids"], got["logprobs"]


class QuantizeTest(ToolTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.gguf = os.path.join(self.folder.name, "small.gguf")
        self.pack = os.path.join(self.folder.name, "small.llmpack")

    def test_files_answer_as_the_model_that_is_quantised_at_load(self):
        flags = ["--linear", "int4:32:asym", "--head", "int8", "--embedding", "int4:64"]
        expected = answer(MODEL, *flags)
        for path in (self.gguf, self.pack):
            self.assertIn("become", run_well(MODEL, path, *flags))
            self.assertEqual(answer(path), expected)
            self.assertEqual(types(path)["blk.0.attn_q.weight"], "Q4_1")
            self.assertEqual(types(path)["output.weight"], "Q8_0")
            self.assertEqual(types(path)["token_embd.weight"], "Q4_0")

    def test_prunes_without_quantising(self):
        self.assertEqual(run_well(MODEL, self.gguf, "--prune", "2:4", "--quiet"), "")
        self.assertEqual(types(self.gguf), types(MODEL))
        self.assertNotEqual(answer(self.gguf), answer(MODEL))
        run_well(MODEL, self.pack, "--prune", "magnitude=0.5", "--linear", "int8:channel")

    def test_requantises_only_when_told(self):
        run_well(MODEL, self.gguf, "--linear", "int8")
        self.check_failure([self.gguf, self.pack, "--linear", "int4"], 1, "requantize")
        run_well(self.gguf, self.pack, "--linear", "int4", "--requantize")

    def test_says_what_is_wrong(self):
        self.check_failure([MODEL, self.gguf], 2, "say what is to change")
        self.check_failure([MODEL, self.gguf, "--linear", "int5"], 2, "int4:32")
        self.check_failure([MODEL, self.gguf, "--prune", "1:4"], 2, "2:4")
        self.check_failure([MODEL, self.gguf, "--prune", "magnitude=2"], 1, "prune_fraction")
        self.check_failure([MODEL, "small.bin", "--linear", "int4"], 2, ".llmpack")
        self.check_failure([MODEL], 2, "missing")


main()
