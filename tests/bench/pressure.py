#!/usr/bin/env python3
"""What latency targets cost and keep under pressure, on this machine. README.md tells more."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import inlay
import models
import replays
import scaling
import single_rules
from child import run_child

STREAMS = 24
STREAM_PROMPT = 64
BUDGETS = (32, 64, 128, 256)  # fixed ones, in tokens a step
TOLERANCE = 1.25  # of the target: the p99 and the worst gap
MOST_TTFT = 1.10  # of the first token under the best fixed budget that keeps the same gap


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=inlay.ROOT / "build-bench", type=pathlib.Path, help="build folder of Inlay")
    parser.add_argument("--smollm2", help="path; default: SmolLM2, from INLAY_SMOLLM2 or the cache")
    parser.add_argument("--document", type=int, default=6000, help="tokens of the prompt that arrives (6000)")
    parser.add_argument("--targets", default="50,100", help="token gaps in ms (50,100)")
    parser.add_argument("--rounds", type=int, default=3, help="each alternates all ways once (3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", default="pressure", help="writes OUTPUT.json and OUTPUT.md")
    parser.add_argument("--parts", default="gaps,agreement,overload,rules,growth",
                        help="of these and plots")
    parser.add_argument("--costs", help="overload without agreement: what steps cost, as llm-replay prints it")
    parser.add_argument("--rate", type=float, default=2, help="agreement: arrivals a second (2)")
    parser.add_argument("--first-token-ms", type=int, default=1000, help="overload: targets of each request (1000)")
    parser.add_argument("--gap-ms", type=int, default=100, help="(100)")
    parser.add_argument("--completion-ms", type=int, default=15000, help="(15000)")
    parser.add_argument("--real-seconds", type=float, default=12, help="overload: of a run on the real engine (12)")
    arguments = parser.parse_args()
    arguments.parts = arguments.parts.split(",")
    arguments.targets = [int(target) for target in arguments.targets.split(",")]
    arguments.model = models.find_model("smollm2", arguments)
    return arguments


def ways(arguments):
    """name: flags of llm-bench."""
    result = {f"target {target} ms": ["--token-gap-ms", target] for target in arguments.targets}
    result.update({f"fixed {budget}": ["--max-step-tokens", budget] for budget in BUDGETS})
    result["no chunks"] = ["--max-step-tokens", arguments.document + STREAMS]
    return result


def measure(arguments, flags):
    """24 streams decode, then a long prompt arrives: gaps of the streams until its first token, and when that came."""
    command = [arguments.build / "samples" / "llm-bench", "--model", arguments.model, "--workload", "arrival",
               "--streams", STREAMS, "--prompt-tokens", STREAM_PROMPT, "--tokens", 32,
               "--arrival-tokens", arguments.document, "--threads", arguments.threads]
    return run_child(command + flags, 600).json_lines()[0]


def middle(runs, key):
    values = [run[key] for run in runs]
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def judge(arguments, results):
    """For each target: whether its gaps hold, and its first token beside the best fixed budget with such gaps."""
    rows = []
    for target in arguments.targets:
        own = results[f"target {target} ms"]
        bound = TOLERANCE * target / 1e3
        fitting = [budget for budget in BUDGETS if results[f"fixed {budget}"]["worst_gap_s"]["median"] <= bound]
        best = min(fitting, key=lambda b: results[f"fixed {b}"]["ttft_s"]["median"], default=None)
        row = {"target_ms": target, "p99": own["p99_gap_s"]["median"] * 1e3 / target,
               "worst": own["worst_gap_s"]["most"] * 1e3 / target, "best_fixed": best}
        if best is not None:
            row["ttft_ratio"] = own["ttft_s"]["median"] / results[f"fixed {best}"]["ttft_s"]["median"]
        rows.append(row)
    return rows


def table(results, judged):
    def ms(value):
        return f"{value['median'] * 1e3:,.0f} [{value['least'] * 1e3:,.0f}, {value['most'] * 1e3:,.0f}]"

    lines = ["| way | p99 gap, ms | worst gap, ms | first token of the document, s |", "|---|---|---|---|"]
    for name, result in results.items():
        ttft = result["ttft_s"]
        lines.append(f"| {name} | {ms(result['p99_gap_s'])} | {ms(result['worst_gap_s'])} | "
                     f"{ttft['median']:.2f} [{ttft['least']:.2f}, {ttft['most']:.2f}] |")
    lines += ["", f"| target | p99 gap / target (<= {TOLERANCE}) | worst gap / target (<= {TOLERANCE}) | "
              f"first token / best fixed budget with such gaps (<= {MOST_TTFT}) |", "|---|---|---|---|"]
    for row in judged:
        ratio = f"{row['ttft_ratio']:.2f} (budget {row['best_fixed']})" if row["best_fixed"] else "no budget has"
        lines.append(f"| {row['target_ms']} ms | {row['p99']:.2f} | {row['worst']:.2f} | {ratio} |")
    return "\n".join(lines)


def gaps(arguments):
    runs = {}
    for turn in range(arguments.rounds):
        order = list(ways(arguments).items())
        for name, flags in order if turn % 2 == 0 else reversed(order):
            runs.setdefault(name, []).append(measure(arguments, flags))
    results = {name: {key: middle(runs[name], key) for key in ("p99_gap_s", "worst_gap_s", "median_gap_s", "ttft_s")}
               for name in ways(arguments)}
    judged = judge(arguments, results)
    return {"results": results, "judged": judged, "runs": runs}, table(results, judged)


def overload(arguments, costs):
    simulated = replays.overload(arguments, costs)
    real = replays.overload(arguments, costs, one_x=simulated["one_x"], loads=replays.REAL_LOADS,
                            seconds=arguments.real_seconds, simulated=False)
    return {"simulated": simulated, "real": real}, "\n\n".join(map(replays.overload_table, (simulated, real)))


def plots(arguments, data):
    """PNGs in the folder OUTPUT-plots. matplotlib lives in the comparison's own venv."""
    folder = pathlib.Path(arguments.output + "-plots")
    folder.mkdir(exist_ok=True)
    paths = replays.timelines(arguments, arguments.costs, folder)
    inputs = {"timelines": {name: str(path) for name, path in paths.items()}, "overload": data.get("overload")}
    (folder / "plots.json").write_text(json.dumps(inputs))
    script = pathlib.Path(__file__).with_name("draw_pressure.py")
    python = models.python_with(scaling.DRAWING_PACKAGE)
    subprocess.run([python, script, folder / "plots.json"], check=True, stdout=sys.stderr)
    return {"folder": str(folder)}, f"Plots: {folder}"


def missed_goals(data):
    """In words, one each."""
    missed = []
    for row in data.get("gaps", {}).get("judged", []):
        missed += [f"gaps under {row['target_ms']} ms: {key} {row[key]:.2f} of it" for key in ("p99", "worst")
                   if row[key] > TOLERANCE]
        if row.get("ttft_ratio", 0) > MOST_TTFT:
            missed.append(f"first token under {row['target_ms']} ms: {row['ttft_ratio']:.2f} of the best fixed budget's")
    missed += [f"agreement of {row['workload']}, {row['figure']}: {row['ratio']:.2f}"
               for row in data.get("agreement", {}).get("rows", []) if not row["holds"]]
    missed += [f"goodput kept at 2x, {where}: {result['kept_at_2x']['admission']:.2f}"
               for where, result in data.get("overload", {}).items() if result["kept_at_2x"]["admission"] < replays.KEEPS]
    return missed + single_rules.missed_goals(data)


def main():
    arguments = parse_arguments()
    inlay.build(arguments.build)
    subprocess.run(["ninja", "-C", arguments.build, "llm-replay"], check=True, stdout=sys.stderr)
    data, texts = {}, []

    def add(name, result):
        data[name] = result[0]
        texts.append(result[1])

    if "gaps" in arguments.parts:
        add("gaps", gaps(arguments))
    if "agreement" in arguments.parts:
        agreed = replays.agreement(arguments)
        add("agreement", (agreed, replays.agreement_table(agreed)))
        arguments.costs = arguments.costs or agreed["costs"]
    if "overload" in arguments.parts:
        add("overload", overload(arguments, arguments.costs))
    if "rules" in arguments.parts:
        add("rules", single_rules.rules(arguments))
    if "growth" in arguments.parts:
        add("growth", single_rules.growth(arguments))
    if "plots" in arguments.parts:
        add("plots", plots(arguments, data))
    pathlib.Path(arguments.output + ".json").write_text(json.dumps(data, indent=1))
    missed = missed_goals(data)
    texts.append("Goals missed: " + ("; ".join(missed) if missed else "none"))
    text = "\n\n".join(texts)
    pathlib.Path(arguments.output + ".md").write_text(text + "\n")
    print(text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
