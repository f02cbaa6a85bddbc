#!/usr/bin/env python3
"""llm-replay: traces on real and simulated engines. Usage: replay_test.py PROGRAM MODEL"""
import json
import pathlib
import tempfile

from tool_util import MODEL, ToolTest, main, run_well

COSTS = "1000000,10000,100000,0,0"
LENGTHS = ["--mean-prompt", "40", "--mean-output", "20", "--most-prompt", "100", "--most-output", "60"]


def replay(*flags):
    return json.loads(run_well("--model", MODEL, *LENGTHS, *flags))


class ReplayTest(ToolTest):
    def test_a_simulated_replay_repeats_itself(self):
        runs = [replay("--requests", "300", "--rate", "20", "--sim-costs", COSTS) for _ in range(2)]
        for run in runs:
            self.assertGreater(run.pop("wall_seconds"), 0)
        self.assertEqual(*runs)
        self.assertEqual(runs[0]["good"], 300)
        self.assertGreater(runs[0]["seconds"], 10)

    def test_what_a_real_engine_has_told_can_be_simulated(self):
        real = replay("--requests", "20", "--rate", "1000", "--threads", "1")
        simulated = replay("--requests", "20", "--rate", "1000", "--sim-costs", real["costs"])
        self.assertEqual(real["generated_tokens"], simulated["generated_tokens"])
        self.assertEqual(simulated["costs"], real["costs"])

    def test_lengths_come_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.csv"
            path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nx,10,3\nx,20,5\n")
            run = replay("--trace", str(path), "--sim-costs", COSTS)
            self.assertEqual(run["requests"], 2)
            self.assertEqual(run["generated_tokens"], 8)
            timeline = pathlib.Path(folder) / "steps.csv"
            replay("--trace", str(path), "--sim-costs", COSTS, "--timeline", str(timeline))
            self.assertGreater(len(timeline.read_text().splitlines()), 5)

    def test_late_requests_are_refused_unless_they_are_kept(self):
        flags = ["--requests", "400", "--rate", "400", "--first-token-ms", "50", "--sim-costs", COSTS]
        refused, kept, unknown = replay(*flags), replay(*flags, "--keep-late"), replay(*flags, "--keep-all")
        self.assertGreater(refused["rejected"], 0)
        self.assertEqual(kept["rejected"], 0)
        self.assertGreater(kept["late"], 0)
        self.assertEqual(unknown["late"], 0)
        self.assertGreater(refused["good"], unknown["good"])

    def test_mistakes_are_named(self):
        self.check_failure(["--model", MODEL], 2, "--requests or --trace")
        self.check_failure([MODEL, "--sim-costs", "1,2"], 1, "five numbers")
        self.check_failure(["--model", MODEL, "--trace", "/nowhere"], 1, "cannot be read")


if __name__ == "__main__":
    main()
