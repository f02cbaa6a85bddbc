"""Tests of the arithmetic behind the table; no engine runs here and no time is asserted."""
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import busy
import child
import cold
import gguf_shape
import memory
import report
import rows
import scaling

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


class OtherEnginesTest(unittest.TestCase):
    def test_shows_a_dash_where_an_engine_has_no_figure(self):
        summary = {**report.summarise(dataclasses.replace(DECODE, goal=0.0), [(2, 1)], None), "others": {"b": 3.0, "c": None}}
        self.assertTrue(report.format_row(summary, ("a", "b", "c")).endswith("| - | 3 tok/s | - |"))

    def test_keeps_the_earlier_rows_that_are_not_measured_again_in_the_order_of_all(self):
        empty = {"rows": [], "memory": [], "busy": [], "cold": [], "raw": {}, "sweeps": {}, "skipped": [], "others": [],
                 "kernels": ""}
        earlier = {**empty, "rows": [{"row": "c", "n": 1}, {"row": "a", "n": 1}], "others": ["x"], "kernels": "k",
                   "skipped": [("a", "why"), ("d", "why")]}
        joined = report.join(earlier, {"a", "b"}, ["a", "b", "c"],
                             {**empty, "rows": [{"row": "b", "n": 2}, {"row": "a", "n": 2}]})
        self.assertEqual([(summary["row"], summary["n"]) for summary in joined["rows"]], [("a", 2), ("b", 2), ("c", 1)])
        self.assertEqual((joined["skipped"], joined["others"], joined["kernels"]), ([("d", "why")], ["x"], "k"))


class MemoryTest(unittest.TestCase):
    plan = {"weights_bytes": 60 << 20, "kv_bytes": 30 << 20, "workspace_bytes": 10 << 20, "tokenizer_bytes": 1 << 20}

    def summary(self, *peaks):
        return memory.summarise(DECODE, self.plan, [({"peak_resident_bytes": ours << 20}, {"peak_resident_bytes": peer << 20})
                                                    for ours, peer in peaks])

    def test_compares_the_worst_run_with_the_plan(self):
        summary = self.summary((90, 300), (105, 200))
        self.assertEqual((summary["ratio"], summary["peer_peak_resident_bytes"]), (1.05, 300 << 20))
        self.assertEqual(memory.format_row(summary),
                         "| decode | 60.0 + 30.0 + 10.0 | 100.0 | 105.0 | 1.050 | <= 1.05 yes | 1.0 | 300.0 |")

    def test_says_when_the_plan_is_exceeded(self):
        self.assertIn("<= 1.05 **no**", memory.format_row(self.summary((106, 1))))


class BusyTest(unittest.TestCase):
    row = dataclasses.replace(DECODE, kind="busy", goal=0.4)

    def test_takes_the_share_kept_within_each_pair(self):
        runs = lambda *rates: [{"value": rate, "others_cores": rate / 1000} for rate in rates]
        summary = busy.summarise(self.row, [{"ours": runs(100, 50), "peer": runs(100, 1)},
                                            {"ours": runs(200, 600), "peer": runs(50, 2)},
                                            {"ours": runs(100, 45), "peer": runs(100, 3)}])
        self.assertEqual(summary["others_cores"], 0.2)
        self.assertEqual((summary["ours"]["kept_min"], summary["ours"]["kept"], summary["ours"]["kept_max"]), (0.45, 0.5, 3))
        self.assertIn(">= 0.4 yes", busy.format_row(summary))
        self.assertAlmostEqual(summary["peer"]["kept"], 0.03)

    def test_runs_both_engines_quiet_and_beside_the_neighbour(self):
        runs = []

        class Engine:
            def __init__(self, name):
                self.name = name

            def measure(self, row, *_):
                runs.append((self.name, row.tokens))
                return {"value": len(runs)}

        row = dataclasses.replace(self.row, tokens=9, peer_tokens=3)
        taken = busy.measure(row, "m", {}, Engine("ours"), Engine("peer"), 2)
        self.assertEqual(runs[:4], [("ours", 9), ("ours", 9), ("peer", 9), ("peer", 3)])
        self.assertEqual([[run["value"] for run in pair["ours"]] for pair in taken], [[1, 2], [7, 8]])


class ColdTest(unittest.TestCase):
    def times(self, start_s):
        return {"ours": {"start_s": start_s, "open_s": 0.02, "stages_s": [0.02, 0.01, 0.07], "prefill_s": 0.07,
                         "others_cores": 0.0},
                "peer": {"start_s": 0.2, "open_s": 0.1, "others_cores": 0.3}, "read_s": 0.03}

    def summary(self, start_s, packed):
        return cold.summarise(dataclasses.replace(DECODE, kind="cold", packed=packed), [self.times(start_s)])

    def test_allows_a_third_more_than_reading_and_prefill_and_15_ms(self):
        self.assertAlmostEqual(self.summary(0.1, True)["target_s"], 0.145)
        self.assertAlmostEqual(self.summary(0.145, True)["above_median"], 1.3)
        self.assertIn("| 1.25 [1.25, 1.25] | <= 1.3 yes |", cold.format_row(self.summary(0.14, True)))
        self.assertIn("| 20.0 + 10.0 + 70.0 | 30.0 + 70.0 |", cold.format_row(self.summary(0.14, True)))
        self.assertIn("<= 1.3 **no**", cold.format_row(self.summary(0.15, True)))

    def test_holds_only_a_pack_to_the_target(self):
        self.assertNotIn("<= 1.3", cold.format_row(self.summary(0.15, False)))

    def test_has_as_many_cells_as_the_header(self):
        self.assertEqual(cold.format_row(self.summary(0.1, True)).count("|"), cold.HEADER.splitlines()[0].count("|"))

    def test_takes_the_ratio_within_each_run(self):
        summary = cold.summarise_ours([self.times(0.115), self.times(0.215), self.times(0.315)])
        self.assertAlmostEqual(summary["above_min"], 1)
        self.assertAlmostEqual(summary["above_median"], 2)
        self.assertAlmostEqual(summary["above_max"], 3)

    def test_tells_when_others_were_busy(self):
        quiet = {**self.summary(0.1, True), "row": "quiet", "others_cores": 0.05}
        lines = report.format_disturbed({"rows": [], "busy": [], "cold": [quiet, self.summary(0.1, True)]})
        self.assertIn("runs: decode (0.30 cores).", lines[1])
        self.assertEqual(report.format_disturbed({"rows": [], "busy": [], "cold": [quiet]}), [])

    def test_reads_a_file_to_its_end(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"ab")
            file.flush()
            self.assertGreater(cold.read_seconds(file.name), 0)


class ScalingTest(unittest.TestCase):
    def test_measures_each_point_and_takes_medians(self):
        curve = scaling.Curve("n", "title", "m", "context", (0, 100, 5000), 4)

        class Ours:
            def measure(self, row, _):
                return {"value": {0: 100.0, 100: 50.0}[row.prompt], "others_cores": row.prompt / 1000}

        class Peer:
            def settings(self, _):
                return [{"fa": "on"}, {"fa": "off"}]

            def times_by_context(self, _, depths, __, setting):
                return {depth: 0.1 if setting["fa"] == "off" else 0.2 for depth in depths}

        *_, data = scaling.measure(curve, "m", Ours(), Peer(), 2, most=1000)
        self.assertEqual(data["sweep"][0], ({"fa": "off"}, 100.0))
        self.assertEqual([(point["x"], point["ours"], point["peer"]) for point in data["points"]],
                         [(0, 10.0, 100.0), (100, 20.0, 100.0)])
        *_, more = scaling.measure(curve, "m", Ours(), Peer(), 1, most=0, earlier=data)
        self.assertEqual([len(point["pairs"]) for point in more["points"]], [3, 2])
        lines = scaling.format_table(data).splitlines()
        self.assertEqual(lines[2], "| Inlay, ms per token | 10 | 20 |")
        self.assertTrue(lines[4].endswith("| 0.00 | 0.10 |"))


class ChildTest(unittest.TestCase):
    def run_python(self, code, timeout_s=60):
        return child.run_child([sys.executable, "-c", code], timeout_s)

    def test_gives_output_and_peak_memory(self):
        ran = self.run_python("x = b'1' * (64 << 20); print('noise'); print('{\"a\": 1}')")
        self.assertEqual(ran.json_lines(), [{"a": 1}])
        self.assertGreater(ran.peak_resident_bytes, 64 << 20)
        self.assertGreater(ran.first_output_s, 0)

    def test_says_why_a_child_failed(self):
        with self.assertRaisesRegex(RuntimeError, "the reason"):
            self.run_python("import sys; sys.exit('the reason')")

    def test_stops_a_child_that_takes_too_long(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.run_python("import time; time.sleep(600)", timeout_s=0.1)

    def test_ends_the_busy_neighbour_with_its_block(self):
        with child.busy_neighbour(max(os.sched_getaffinity(0))) as pid:
            self.assertEqual(os.sched_getaffinity(pid), {max(os.sched_getaffinity(0))})
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)


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
