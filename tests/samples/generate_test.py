#!/usr/bin/env python3
"""llm-generate: its flags, its JSON and its exit codes. Usage: generate_test.py PROGRAM MODEL"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MODEL = sys.argv[1:3]


def run(*arguments, stdin=""):
    return subprocess.run([PROGRAM, "--model", MODEL, *arguments], input=stdin, capture_output=True, text=True)


def run_json(*arguments, stdin=""):
    done = run("--json", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class GenerateTest(unittest.TestCase):
    def test_json_holds_ids_text_logprobs_and_stats(self):
        answer = run_json("--prompt", "The quick", "--max-tokens", "5", "--ignore-eos", "--logprobs", "3")
        self.assertEqual(len(answer["ids"]), 5)
        self.assertEqual([len(entry) for entry in answer["logprobs"]], [4] * 5)
        self.assertEqual([entry[0]["id"] for entry in answer["logprobs"]], answer["ids"])
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer["stats"]["generated_tokens"], 5)

    def test_greedy_choice_is_the_most_likely(self):
        answer = run_json("--ids", "5,6,7", "--max-tokens", "4", "--ignore-eos", "--logprobs", "1")
        for entry in answer["logprobs"]:
            self.assertEqual(entry[0], entry[1])

    def test_stdin_and_prompt_are_the_same_prompt(self):
        flags = ["--max-tokens", "6", "--ignore-eos"]
        self.assertEqual(run_json("--prompt", "abc", *flags)["ids"], run_json("--stdin", *flags, stdin="abc")["ids"])

    def test_a_seed_repeats_its_answer_on_any_threads_and_kv_dtype(self):
        for dtype in ("f32", "f16", "bf16", "fp8", "int8"):
            flags = ["--ids", "9,8,7", "--max-tokens", "12", "--ignore-eos", "--temperature", "1", "--top-k", "50",
                     "--top-p", "0.9", "--min-p", "0.01", "--seed", "42", "--kv-dtype", dtype]
            self.assertEqual(run_json(*flags, "--threads", "1")["ids"], run_json(*flags, "--threads", "3")["ids"])

    def test_a_stop_string_ends_the_text_before_it(self):
        flags = ["--ids", "9,8,7", "--max-tokens", "24", "--ignore-eos"]
        text = run_json(*flags)["text"]
        stop = text[len(text) // 2:][:3]
        answer = run_json(*flags, "--stop", stop)
        self.assertEqual(answer["finish_reason"], "stop_string")
        self.assertEqual(answer["text"], text[:text.index(stop)])

    def test_a_chat_goes_through_the_models_template(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump([{"role": "user", "content": "Hello"}], file)
        try:
            self.assertGreater(run_json("--chat", file.name, "--max-tokens", "2")["stats"]["prompt_tokens"], 1)
        finally:
            os.unlink(file.name)

    def test_failures_exit_with_a_message_and_without_an_answer(self):
        for arguments in (["--prompt", "a", "--stdin"], ["--prompt", "a", "--nonsense"], [], ["--ids", "1,x"],
                          ["--ids", "99999999"], ["--prompt", "a", "--kernels", "none"],
                          ["--chat", "/no/such/file"], ["--prompt", "a", "--temperature", "-1"]):
            done = run(*arguments)
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertTrue(done.stderr.startswith("llm-generate: "), done.stderr)
            self.assertEqual(done.stdout, "")

    def test_the_model_needs_no_flag(self):
        done = subprocess.run([PROGRAM, MODEL, "--ids", "9,8,7", "--max-tokens", "2"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([PROGRAM, MODEL, "hi"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("one argument too many: hi", done.stderr)

    def test_a_wrong_flag_is_told_in_two_lines(self):
        done = run("--prompt", "a", "--nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.assertIn("unknown flag: --nonsense", done.stderr)
        self.assertIn("--help lists the flags", done.stderr)
        listed = run("--help")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        self.assertRegex(listed.stdout, r"--max-tokens +0 \(default\): as many as the context holds")

    def test_counters_that_cannot_be_offered_name_their_path(self):
        done = run("--prompt", "a", "--metrics-socket", "/no/such/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("metrics: /no/such/x: No such file", done.stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_an_answer_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--model", MODEL, "--ids", "9,8,7", "--max-tokens", "2"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write the answer", done.stderr)

    def test_a_trace_holds_the_steps_and_the_request(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            self.assertEqual(run("--ids", "9,8,7", "--max-tokens", "8", "--ignore-eos", "--trace", path).returncode, 0)
            with open(path) as file:
                names = {event["name"] for event in json.load(file)["traceEvents"]}
        self.assertLessEqual({"step", "forward", "request"}, names)

    def test_without_json_the_answer_is_on_stdout_and_stats_on_stderr(self):
        flags = ["--ids", "9,8,7", "--max-tokens", "8", "--ignore-eos"]
        done = run(*flags)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, run_json(*flags)["text"] + "\n")
        self.assertIn("first token", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
