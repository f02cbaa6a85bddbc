"""Runs of llm-replay: the simulated engine beside the real one, and what load does with and without admission."""
import pathlib
import statistics

from child import run_child

TRACE = pathlib.Path(__file__).resolve().parents[3] / "shared" / "traces" / "sharegpt4_turns_lengths.csv"
WITHIN = 0.10       # of the real engine: the simulated one
GOOD_SHARE = 0.9    # 1x is the largest rate at which so many requests meet all their targets
KEEPS = 0.8         # of the peak goodput, at 2x
AGREES = ("ttft_p50_s", "ttft_p99_s", "tokens_per_s", "preemptions")
LOADS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
REAL_LOADS = (0.5, 1.0, 2.0)  # of what the simulated engine found
ADMISSIONS = {"admission": [], "no admission": ["--keep-all"]}


class Replays:
    """`flags`: of llm-replay, for every run."""

    def __init__(self, arguments, flags=()):
        self.program = arguments.build / "samples" / "llm-replay"
        self.flags = ["--model", arguments.model, "--threads", arguments.threads, *flags]

    def run(self, *flags, costs=None):
        simulated = ["--sim-costs", costs] if costs else []
        child = run_child([self.program, *self.flags, *flags, *simulated], 900)
        return {**child.json_lines()[0], "others_cores": child.others_cores}


def trace_flags(arguments):
    """Lengths of recorded conversations where they are beside the checkout, else exponential ones."""
    cuts = ["--most-prompt", 512, "--most-output", 256]
    if TRACE.exists():
        return ["--trace", TRACE, "--scale", 4, *cuts]
    return ["--mean-prompt", 96, "--mean-output", 64, *cuts]


def workloads(arguments):
    """name: flags. Requests one by one at half of what the engine can do; and all at once, in too few blocks."""
    return {"arrivals": [*trace_flags(arguments), "--hide-lengths", "--requests", 120, "--rate", arguments.rate,
                         "--kv-tokens", 4096],
            "burst": ["--mean-prompt", 48, "--mean-output", 96, "--most-prompt", 256, "--most-output", 256,
                      "--hide-lengths", "--requests", 200, "--rate", 200, "--kv-tokens", 1024, "--admission", "greedy"]}


def agreement(arguments):
    """Small traces on the real engine, each followed by the simulated one with the costs that the real one has told.
    Every round has traces of its own; the median round counts, since other programs take from a real one at times."""
    runs = {}
    for turn in range(arguments.rounds):
        for name, flags in workloads(arguments).items():
            replays = Replays(arguments, [*flags, "--seed", turn + 1])
            real = replays.run()
            runs.setdefault(name, []).append((real, replays.run(costs=real["costs"])))
    rows = [agreement_row(name, key, pairs) for name, pairs in runs.items() for key in AGREES]
    quietest = min(runs["arrivals"], key=lambda pair: pair[0]["others_cores"])
    return {"rows": [row for row in rows if row], "runs": runs, "costs": quietest[0]["costs"]}


def agreement_row(name, key, pairs):
    """None where neither engine had any in some round."""
    if any(real[key] == simulated[key] == 0 for real, simulated in pairs):
        return None
    ratios = [simulated[key] / real[key] if real[key] else float("inf") for real, simulated in pairs]
    ratio = statistics.median(ratios)
    return {"workload": name, "figure": key, "real": statistics.median(real[key] for real, _ in pairs),
            "simulated": statistics.median(simulated[key] for _, simulated in pairs), "ratio": ratio,
            "least": min(ratios), "most": max(ratios), "holds": abs(ratio - 1) <= WITHIN}


def agreement_table(result):
    lines = [f"| workload | figure | real engine | simulated | ratio (within {WITHIN:.0%}) [min, max] | |",
             "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        lines.append(f"| {row['workload']} | {row['figure']} | {row['real']:.4g} | {row['simulated']:.4g} | "
                     f"{row['ratio']:.3f} [{row['least']:.2f}, {row['most']:.2f}] | {'' if row['holds'] else 'missed'} |")
    return "\n".join(lines)


def target_flags(arguments):
    return ["--first-token-ms", arguments.first_token_ms, "--gap-ms", arguments.gap_ms,
            "--completion-ms", arguments.completion_ms, "--policy", "deadline"]


def largest_good_rate(replays, flags, costs, seconds):
    """1x, found on the simulated engine by halving."""
    low, high = 0.0, 1.0

    def is_good(rate):
        run = replays.run(*flags, "--rate", rate, "--requests", max(200, int(rate * seconds)), costs=costs)
        return run["good"] >= GOOD_SHARE * run["requests"]

    while is_good(high):
        low, high = high, 2 * high
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return low


def overload(arguments, costs, one_x=None, loads=LOADS, seconds=600, simulated=True):
    """Goodput against load, with and without admission. Load is a multiple of `one_x`, which is searched if unknown."""
    replays = Replays(arguments, [*trace_flags(arguments), "--hide-lengths", "--max-queued-requests", 65536])
    flags = target_flags(arguments)
    if one_x is None:
        one_x = largest_good_rate(replays, flags, costs, seconds)
    curves = {name: [] for name in ADMISSIONS}
    for load in loads:
        for name, extra in ADMISSIONS.items():
            rate = load * one_x
            run = replays.run(*flags, *extra, "--rate", rate, "--requests", max(20, int(rate * seconds)),
                              costs=costs if simulated else None)
            # Over the time in which requests came: what is worked off afterwards is not a rate.
            run["goodput"] = run["good"] / (run["requests"] / rate)
            run["load"] = load
            curves[name].append(run)
    peak = max(run["goodput"] for run in curves["admission"])
    kept = {name: next(run["goodput"] for run in runs if run["load"] == 2.0) / peak for name, runs in curves.items()}
    return {"one_x": one_x, "curves": curves, "peak": peak, "kept_at_2x": kept, "simulated": simulated}


def overload_table(result):
    where = "simulated" if result["simulated"] else "real engine"
    lines = [f"1x: {result['one_x']:.3f} requests a second ({where})", "",
             "| load | goodput with admission, requests/s | refused | without | refused |", "|---|---|---|---|---|"]
    pairs = zip(*(result["curves"][name] for name in ADMISSIONS))
    for guarded, open_to_all in pairs:
        cells = [f"{guarded['load']:g}x"]
        for run in (guarded, open_to_all):
            cells += [f"{run['goodput']:.3f}", f"{run['rejected'] / run['requests']:.0%}"]
        lines.append("| " + " | ".join(cells) + " |")
    kept = result["kept_at_2x"]
    lines += ["", f"At 2x, of the peak: {kept['admission']:.2f} with admission (>= {KEEPS}), "
                  f"{kept['no admission']:.2f} without."]
    return "\n".join(lines)


def mixed_trace(folder):
    """Streams of 64 + 192 tokens, and now and then a document."""
    path = folder / "mixed.csv"
    rows = ["6000,8" if i % 16 == 15 else "64,192" for i in range(48)]
    path.write_text("num_prefill_tokens,num_decode_tokens\n" + "\n".join(rows) + "\n")
    return path


def timelines(arguments, costs, folder):
    """name: CSV, a line a step of the simulated engine."""
    mixed = ["--trace", mixed_trace(folder), "--most-prompt", 6000, "--rate", 4, "--kv-tokens", 32768]
    jobs = {"chunks": [*mixed, "--token-gap-ms", 50],
            "no chunks": [*mixed, "--max-step-tokens", 6100],
            "predict": [*workloads(arguments)["burst"], "--admission", "predict"],
            "greedy": workloads(arguments)["burst"]}
    paths = {}
    for name, flags in jobs.items():
        paths[name] = folder / f"{name.replace(' ', '-')}.csv"
        Replays(arguments, flags).run("--timeline", paths[name], costs=costs)
    return paths
