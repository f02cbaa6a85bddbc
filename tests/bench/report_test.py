"""Tests of the arithmetic behind the table; no engine runs here and no time is asserted."""
import dataclasses
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gguf_shape
import report
import rows

MACHINE = {"read_gb_per_s": 10.0, "int8_gop_per_s": 100.0, "f32_gflop_per_s": 10.0}
DECODE = rows.Row("decode", "m", "decode", 0, 2, goal=1.5)
GGUF = pathlib.Path(__file__).resolve().parents[1] / "data" / "gguf"


class SummaryTest(unittest.TestCase):
    def test_takes_the_ratio_within_each_pair(self):
        summary = report.summarise(DECODE, [(10, 10), (30, 10), (40, 20)], 100)
        self.assertEqual((summary["ratio_min"], summary["ratio_median"], summary["ratio_max"]), (1, 2, 3))
        self.assertEqual(summary["ours_share"], 0.3)
        self.assertTrue(report.reaches_goal(summary))

    def test_wants_a_low_ratio_where_lower_is_better(self):
        row = dataclasses.replace(DECODE, kind="arrival", goal=0.1)
        self.assertTrue(report.reaches_goal(report.summarise(row, [(0.05, 1)], None)))
        self.assertFalse(report.reaches_goal(report.summarise(row, [(0.2, 1)], None)))

    def test_formats_a_row_without_limit_or_goal(self):
        row = dataclasses.replace(DECODE, goal=0.0)
        self.assertEqual(report.format_row(report.summarise(row, [(2, 1)], None)),
                         "| decode | 2 tok/s | 1 tok/s | 2.00 [2.00, 2.00] | - | - | - |")


class LimitTest(unittest.TestCase):
    shape = gguf_shape.Shape(layer_bytes=9 * 10**8, layer_weights=10**9, head_bytes=10**8, head_weights=10**8, kv_values=0,
                             head_dim=64)

    def test_one_stream_is_bound_by_reading(self):
        self.assertAlmostEqual(gguf_shape.limit_tokens_per_s(DECODE, self.shape, MACHINE), 10.0)

    def test_many_streams_are_bound_by_arithmetic(self):
        row = dataclasses.replace(DECODE, kind="streams", streams=64)
        self.assertAlmostEqual(gguf_shape.limit_tokens_per_s(row, self.shape, MACHINE), 100e9 / 2.2e9)

    def test_float_weights_are_measured_against_the_float_rate(self):
        row = dataclasses.replace(DECODE, kind="prefill", prompt=1000)
        shape = dataclasses.replace(self.shape, integer=False, head_weights=0)
        self.assertAlmostEqual(gguf_shape.limit_tokens_per_s(row, shape, MACHINE), 5.0)


class ShapeTest(unittest.TestCase):
    def test_counts_the_bytes_of_a_quantised_file(self):
        shape = gguf_shape.read_shape(GGUF / "llama_h64-Q4_0.gguf")
        self.assertTrue(shape.integer)
        self.assertEqual(shape.layer_bytes, shape.layer_weights // 32 * 18)

    def test_tells_a_float_file(self):
        self.assertFalse(gguf_shape.read_shape(GGUF / "llama_h64-BF16.gguf").integer)


if __name__ == "__main__":
    unittest.main()
