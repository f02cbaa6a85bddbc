#!/usr/bin/env python3
"""llm-pack: packs that answer as their model does. Usage: pack_test.py PROGRAM MODEL LLM_GENERATE LLM_INSPECT"""
import json
import os
import subprocess
import tempfile

from tool_util import MODEL, OTHERS, ToolTest, main, run_well


def answer(model, *flags):
    done = subprocess.run([OTHERS[0], "--model", model, "--json", "--prompt", "The quick", "--max-tokens", "8",
                           "--ignore-eos", "--logprobs", "3", *flags], capture_output=True, text=True, check=True)
    got = json.loads(done.stdout)
    return got["ids"], got["text"], got["logprobs"]


def inspect(model):
    done = subprocess.run([OTHERS[1], model, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class PackTest(ToolTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.pack = os.path.join(self.folder.name, "model.llmpack")

    def test_a_pack_answers_as_its_model(self):
        self.assertIn("packed", run_well(MODEL, self.pack))
        self.assertEqual(answer(self.pack), answer(MODEL))
        self.assertEqual(answer(self.pack, "--map-pack"), answer(MODEL))
        self.assertEqual(os.listdir(self.folder.name), ["model.llmpack"])

    def test_a_pack_shows_what_its_model_holds(self):
        run_well(MODEL, self.pack, "--quiet")
        ours, theirs = inspect(self.pack), inspect(MODEL)
        for part in ("name", "architecture", "vocab_size", "metadata", "has_chat_template"):
            self.assertEqual(ours[part], theirs[part])
        for part in ("weights_bytes", "kv_bytes", "workspace_bytes", "tokenizer_bytes"):
            self.assertEqual(ours["plan"][part], theirs["plan"][part], part)
        self.assertEqual(ours["plan"]["loading_bytes"], 0)
        self.assertEqual([tensor["name"] for tensor in ours["tensors"]],
                         [tensor["name"] for tensor in theirs["tensors"]])

    def test_verify_names_the_tensor_that_differs(self):
        run_well(MODEL, self.pack)
        self.assertIn("whole", run_well("--verify", self.pack))
        tensor = inspect(self.pack)["tensors"][7]
        with open(self.pack, "r+b") as file:
            file.seek(tensor["offset"] + tensor["bytes"] // 2)
            byte = file.read(1)[0]
            file.seek(-1, 1)
            file.write(bytes([byte ^ 16]))
        self.check_failure(["--verify", self.pack], 1, "DATA_LOSS: tensor " + tensor["name"])

    def test_a_pack_for_other_kernels_is_refused(self):
        run_well(MODEL, self.pack, "--kernels", "reference")
        self.check_failure(["--verify", self.pack], 1, "made for kernels reference:blocks-1")
        run_well("--verify", self.pack, "--kernels", "reference")

    def test_mistakes_are_named(self):
        self.check_failure([], 2, "either MODEL OUT.llmpack or --verify PACK")
        self.check_failure([MODEL], 2, "MODEL and OUT.llmpack go together")
        self.check_failure([MODEL, self.pack, "third"], 2, "one argument too many")
        self.check_failure([MODEL, self.pack, "--verify", self.pack], 2, "either MODEL OUT.llmpack or --verify PACK")
        self.check_failure(["/no/such/model", self.pack], 1, "NOT_FOUND")
        self.check_failure([MODEL, "/no/such/folder/model.llmpack"], 1, "NOT_FOUND")
        self.check_failure(["--verify", MODEL], 1, "is no pack")
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    main()
