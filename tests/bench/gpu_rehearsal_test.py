#!/usr/bin/env python3
"""gpu.sh from end to end on the emulated device, and with programs that fail, hang or talk nonsense.

Usage: gpu_rehearsal_test.py CUDA_BENCH LLM_BENCH GPU_TEST SYNTHETIC_MODEL, the programs of a build.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import gpu_report

HERE = os.path.dirname(os.path.abspath(__file__))
CUDA_BENCH, LLM_BENCH, GPU_TEST, SYNTHETIC_MODEL = sys.argv[1:5]
FIELDS = {"what", "shape", "bytes", "us", "floor_us", "of_floor", "of_copy_rate"}
# As gpu_pack.sh writes it.
TEST = '''add_test(OnGpu.rms_norm "$ENV{INLAY_PACK}/tests/gpu/rms_norm_on_gpu_test" "--gtest_filter=*/cuda_on_cpu")
set_tests_properties(OnGpu.rms_norm PROPERTIES LABELS gpu SKIP_RETURN_CODE 77 WORKING_DIRECTORY "$ENV{INLAY_ROOT}")
'''


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class GpuShTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.script("bin/nvidia-smi", "echo 'Emulated \"device\", 8.9, none'")
        self.script("build/tests/bench/cuda_bench", f'exec "{CUDA_BENCH}" "$@"')
        self.script("build/samples/llm-bench", f'exec "{LLM_BENCH}" "$@" --threads 1')
        self.script("build/tests/bench/synthetic_model", f'exec "{SYNTHETIC_MODEL}" "$@"')
        self.give_test(f'[ -d tests/data ] && exec "{GPU_TEST}" "$@"')
        write(self.path("build/CTestTestfile.cmake"), TEST)
        write(self.path("build/packed"), "")
        write(self.path("build/rehearsal"), "")

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, name, text):
        write(self.path(name), f"#!/bin/sh\n{text}\n", 0o755)

    def give_test(self, text):
        self.script("build/tests/gpu/rms_norm_on_gpu_test", text)

    def run_it(self, budget=280):
        """(exit code, JSON, what it said)"""
        environment = dict(os.environ, INLAY_BUILD=self.path("build"), INLAY_CACHE=self.path("cache"),
                           INLAY_BUDGET_S=str(budget), PATH=self.path("bin") + ":" + os.environ["PATH"])
        process = subprocess.run([os.path.join(HERE, "gpu.sh"), self.path("gpu.json")], env=environment,
                                 capture_output=True, text=True, check=False, timeout=250)
        try:
            with open(self.path("gpu.json"), encoding="utf-8") as file:
                return process.returncode, json.load(file), process.stderr
        except FileNotFoundError:
            return process.returncode, None, process.stderr

    def test_every_figure_is_there_and_says_that_it_is_none(self):
        code, result, said = self.run_it()
        self.assertEqual(code, 0, said)
        self.assertEqual(result["tests"], "passed")
        self.assertEqual(result["failures"], [])
        self.assertTrue(result["rehearsal"] and result["limits"]["rehearsal"])
        for figure in result["figures"]:
            self.assertEqual(FIELDS - figure.keys(), set(), figure)
            self.assertTrue(figure["rehearsal"], figure)
            self.assertGreater(figure["bytes"], 0, figure)
            self.assertGreater(figure["us"], 0, figure)
            self.assertGreater(figure["of_floor"], 0, figure)
        what = {figure["what"] for figure in result["figures"]}
        self.assertLessEqual({"linear BF16", "linear F8_E4M3", "linear Q4_K", "linear Q4_Z", "attention f16", "attention bf16",
                              "row_stats", "sample", "model bf16", "model fp8", "model q4_k"}, what)
        shapes = [figure["shape"] for figure in result["figures"] if figure["what"] == "model bf16"]
        for variant in ("--no-graphs", "--no-run-ahead", "--no-batch-invariant"):
            self.assertTrue(any(variant in shape for shape in shapes), shapes)
        for figure in result["figures"]:
            if figure["what"] == "model q4_k":
                self.assertEqual(figure["graph_steps"] == 0, "--no-graphs" in figure["shape"], figure)
                self.assertTrue(figure["ahead_steps"] == 0 or "--no-run-ahead" not in figure["shape"], figure)
        with open(self.path("gpu.md"), encoding="utf-8") as file:
            self.assertIn("no figure here is a measurement", file.read())

    def test_what_fails_or_hangs_is_named_and_costs_nothing_else(self):
        self.give_test("exit 1")
        self.script("build/tests/bench/cuda_bench", '''case "$2" in
  decode) echo '{"copy_gb_per_s": 1.0}'; echo '{"what": "a"}'; printf '{"what": "cut' ; echo 'out of "luck"' >&2; exit 3 ;;
  attention) echo '{"what": "b"}'; printf '{"what": "cut'; sleep 1000 ;;
  *) echo '{"what": "c"}' ;;
esac''')
        self.script("build/samples/llm-bench", "echo nonsense; exit 1")
        code, result, _ = self.run_it(budget=15)
        self.assertEqual(code, 1)
        self.assertEqual(result["tests"], "failed")
        self.assertEqual([figure["what"] for figure in result["figures"]], ["a", "b"])
        parts = {part["part"]: part["result"] for part in result["parts"]}
        self.assertEqual(parts["decode"], "exit code 3: out of luck")
        self.assertEqual(parts["attention"], "not finished")
        self.assertEqual(parts["logits"], "no time was left")
        for name in ("OnGpu.rms_norm: Failed", "decode: exit code 3", "attention: not finished", "logits", "model bf16"):
            self.assertTrue(any(failure.startswith(name) for failure in result["failures"]), result["failures"])

    def test_tests_that_skip_are_no_pass(self):
        self.give_test("exit 77")
        self.script("build/tests/bench/cuda_bench", "")
        self.script("build/tests/bench/synthetic_model", "exit 1")
        code, result, _ = self.run_it()
        self.assertEqual((code, result["tests"], result["limits"], result["figures"]), (1, "skipped", None, []))

    def test_without_a_gpu_it_says_so(self):
        self.script("bin/nvidia-smi", "echo 'No devices were found'; exit 6")
        code, result, said = self.run_it()
        self.assertEqual((code, result), (1, None))
        self.assertIn("no GPU: No devices were found", said)


class ReportTest(unittest.TestCase):
    README = """
| kernel, shape | bytes | floor, us | expected of floor |
|---|---|---|---|
| linear_int_few, Q4_K gate_up [28,672, 4,096], 1 row | 66 MB | 20 | 80 %: few |
| the same, o [4,096, 4,096] | 9 MB | 3 | 50 %: small |
| linear_split, F8_E4M3 gate_up, 1 row | 125 MB | 37 | 50 % |
| linear_split, the same, 4,096 rows | 125 MB | 2,920 | 25 % |
| linear_bf16, gate_up, 4,096 rows | 235 MB | 972 | 40 % |
| attention, prefill 4,096 tokens, 128 heads of 576, bf16 | | | 30 % |
| sample, 256 rows of 128,256, top-p | | | 33 % |
| norm | | | launch bound |
| row_stats, 256 rows | | | 80 % / 70 %: two GPUs |

| another | expected of floor? |
"""

    def share(self, what, shape):
        return gpu_report.expected({"what": what, "shape": shape}, gpu_report.expectations(self.README))

    def test_a_figure_finds_the_row_of_its_op_format_and_shape(self):
        self.assertEqual(self.share("linear Q4_K", "gate_up [28672, 4096], 1 row"), 0.8)
        self.assertEqual(self.share("linear Q4_K", "o [4096, 4096], 1 row"), 0.5)
        self.assertEqual(self.share("linear BF16", "gate_up [28672, 4096], 4096 rows"), 0.4)
        self.assertEqual(self.share("attention f16", "prefill 4096 tokens, 128 heads of 576"), None)
        self.assertEqual(self.share("attention bf16", "prefill 4096 tokens, 128 heads of 576"), 0.3)
        self.assertEqual(self.share("sample", "256 rows of 128256, top-p"), 0.33)
        self.assertEqual(self.share("linear F8_E4M3", "gate_up [28672, 4096], 1 row"), 0.5)
        self.assertEqual(self.share("linear F8_E4M3", "gate_up [28672, 4096], 4096 rows"), 0.25)
        self.assertEqual(self.share("linear BF16", "gate_up [28672, 4096], 8 rows"), None)
        self.assertEqual(self.share("linear Q4_K", "down [4096, 14336], 1 row"), None)

    def test_of_two_shares_the_second_is_of_an_h200(self):
        for h200, share in ((False, 0.8), (True, 0.7)):
            self.assertEqual(gpu_report.expected({"what": "row_stats", "shape": "256 rows"},
                                                 gpu_report.expectations(self.README, h200)), share)

    def test_the_table_of_the_kernels_is_read(self):
        with open(gpu_report.README, encoding="utf-8") as file:
            rows = gpu_report.expectations(file.read())
        self.assertGreater(len(rows), 10)
        # The words are those of the benchmark's figures; not all of them need have a row.
        figures = [("linear Q4_K", "gate_up [28672, 4096], 1 row"), ("linear BF16", "gate_up [28672, 4096], 1 row"),
                   ("linear BF16", "gate_up [28672, 4096], 4096 rows"), ("linear F8_E4M3", "gate_up [28672, 4096], 1 row"),
                   ("attention f16", "1 token, 8192 keys"), ("attention f16", "prefill 4096 tokens"),
                   ("attention bf16", "prefill 4096 tokens, 128 heads of 576"), ("row_stats", "256 rows of 128256"),
                   ("sample", "256 rows of 128256, top-p")]
        found = [gpu_report.expected({"what": what, "shape": shape}, rows) for what, shape in figures]
        self.assertGreater(len([share for share in found if share is not None]), 6, found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
