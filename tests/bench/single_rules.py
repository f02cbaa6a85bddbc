"""Each rule of the scheduler by itself: chunks, held batches, reuse of prefixes, and how admission fills the KV memory."""
import re
import subprocess
import sys

from child import run_child

DOCUMENT = 3000
MOST_CHUNKED = {"chunks_512": 1.25, "chunks_2048": 1.05}  # of the time of one step
ORACLE_SHARE = 0.95      # of its occupancy: predicted growth
MOST_PREEMPTIONS = 0.02  # a request
MOST_WASTE = 0.04        # of the allocated slots
GROWTH = re.compile(r"^(.+?) +occupancy ([\d.]+), preemptions ([\d.]+) a request, recomputed ([\d.]+), waste ([\d.]+), (\d+) steps$",
                    re.MULTILINE)


def build(arguments, target):
    subprocess.run(["ninja", "-C", arguments.build, target], check=True, stdout=sys.stderr)


def rules(arguments):
    build(arguments, "scheduling-bench")
    program = arguments.build / "tests" / "bench" / "scheduling-bench"
    data = {way: run_child([program, arguments.model, way, size, arguments.rounds], 900).json_lines()[0]
            for way, size in (("chunks", DOCUMENT), ("hold", 0), ("saved", 0), ("tier", 0))}
    return data, rules_table(data)


def rule_rows(data):
    """(what, beside what, ms, ms, goal of the ratio in words, whether it holds)"""
    chunks, hold, saved, tier = (data[way] for way in ("chunks", "hold", "saved", "tier"))
    loaded_ms = saved["load_ms"] + saved["loaded_ttft_ms"]
    rows = [(f"{DOCUMENT} tokens in chunks of {key.split('_')[1]}", "in one step", chunks[key] * chunks["whole_ms"],
             chunks["whole_ms"], f"at most {most}", chunks[key] <= most) for key, most in MOST_CHUNKED.items()]
    return rows + [
        ("eight prompts, held: mean first token", "not held", hold["held_mean_ttft_ms"], hold["mean_ttft_ms"], "", True),
        ("the last first token", "not held", hold["held_last_ttft_ms"], hold["last_ttft_ms"], "", True),
        (f"{saved['tokens']} tokens loaded: load and first token", "computed", loaded_ms, saved["computed_ttft_ms"],
         "below 1", loaded_ms < saved["computed_ttft_ms"]),
        (f"{tier['tokens']} tokens from the second tier", "computed", tier["tier_ttft_ms"], tier["ttft_ms"], "below 1",
         tier["tier_ttft_ms"] < tier["ttft_ms"])]


def rules_table(data):
    lines = ["| what | beside | ms | ms | ratio | goal | |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {what} | {beside} | {own:.4g} | {other:.4g} | {own / other:.3f} | {goal} | {'' if holds else 'missed'} |"
              for what, beside, own, other, goal, holds in rule_rows(data)]
    return "\n".join(lines)


def missed_goals(data):
    missed = []
    if "rules" in data:
        missed += [f"{what}: {own / other:.3f}" for what, _, own, other, _, holds in rule_rows(data["rules"]) if not holds]
    if data.get("growth"):
        oracle, predict = data["growth"][0], data["growth"][1]
        bounds = (("occupancy", predict["occupancy"] >= ORACLE_SHARE * oracle["occupancy"]),
                  ("preemptions", predict["preemptions"] < MOST_PREEMPTIONS), ("waste", predict["waste"] < MOST_WASTE))
        missed += [f"predicted growth, {what}: {predict[what]:.3f}" for what, holds in bounds if not holds]
    return missed


def growth(arguments):
    """The scheduler alone, over the lengths of recorded conversations: the bounds are ctest's, the figures are shown here."""
    build(arguments, "growth_trace_test")
    program = arguments.build / "tests" / "unit" / "scheduler" / "growth_trace_test"
    found = GROWTH.findall(run_child([program], 600).output)
    if not found:
        return {}, "admission: the recorded lengths are not beside the checkout"
    names = ("occupancy", "preemptions", "recomputed", "waste", "steps")
    rows = [{"policy": policy, **dict(zip(names, map(float, figures)))} for policy, *figures in found]
    return rows, growth_table(rows)


def growth_table(rows):
    oracle, predict = rows[0], rows[1]
    lines = ["| admission | occupancy | preemptions a request | recomputed / prompt tokens | waste | steps |", "|---|---|---|---|---|---|"]
    lines += [f"| {row['policy']} | {row['occupancy']:.1%} | {row['preemptions']:.3f} | {row['recomputed']:.3f} | "
              f"{row['waste']:.1%} | {row['steps']:,.0f} |" for row in rows]
    lines += ["", f"Predicted growth beside the oracle: {predict['occupancy'] / oracle['occupancy']:.3f} of its occupancy (>= {ORACLE_SHARE}), "
              f"{predict['preemptions']:.3f} preemptions a request (< {MOST_PREEMPTIONS}), waste {predict['waste']:.3f} (< {MOST_WASTE}). "
              "From the second oracle on, prompts and outputs are exchanged."]
    return "\n".join(lines)
