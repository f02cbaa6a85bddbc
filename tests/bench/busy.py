"""Decode while another process takes one of the cores: the share of its own quiet rate that each engine keeps."""
import dataclasses
import os
import statistics

from child import busy_neighbour


def measure(row, model, setting, ours, peer, pairs):
    """[{"ours": (quiet, busy), "peer": (quiet, busy)}] as `measure` of the engines. Quiet and busy runs are neighbours in time.

    Who goes first alternates. Beside the neighbour the peer decodes `peer_tokens`, for it may be a hundred times slower.
    """
    core = max(os.sched_getaffinity(0))
    short = dataclasses.replace(row, tokens=row.peer_tokens or row.tokens)
    engines = {"ours": lambda busy: ours.measure(row, model),
               "peer": lambda busy: peer.measure(short if busy else row, model, setting)}
    taken = []
    for index in range(pairs):
        rates = {}
        for who in ("ours", "peer") if index % 2 == 0 else ("peer", "ours"):
            quiet = engines[who](False)
            with busy_neighbour(core):
                rates[who] = (quiet, engines[who](True))
        taken.append(rates)
    return taken


def summarise(row, taken):
    pairs = [{who: [run["value"] for run in runs[who]] for who in runs} for runs in taken]
    summary = {"row": row.name, "unit": row.unit, "goal": row.goal, "pairs": pairs,
               "others_cores": max(runs[who][0]["others_cores"] for runs in taken for who in runs)}  # of the quiet ones
    for who in ("ours", "peer"):
        kept = [rates[who][1] / rates[who][0] for rates in pairs]
        summary[who] = {"quiet": statistics.median(rates[who][0] for rates in pairs),
                        "busy": statistics.median(rates[who][1] for rates in pairs),
                        "kept": statistics.median(kept), "kept_min": min(kept), "kept_max": max(kept)}
    return summary


HEADER = ("| one core taken by another process, tok/s | Inlay quiet | busy | share kept: median [min, max] | goal | "
          "llama.cpp quiet | busy | share kept: median [min, max] |\n|---|---|---|---|---|---|---|---|")


def format_row(summary):
    def cells(rates):
        return [f"{rates['quiet']:.3g}", f"{rates['busy']:.3g}",
                f"{rates['kept']:.3f} [{rates['kept_min']:.3f}, {rates['kept_max']:.3f}]"]
    reached = "yes" if summary["ours"]["kept"] >= summary["goal"] else "**no**"
    goal = f">= {summary['goal']:g} {reached}" if summary["goal"] else "-"
    return "| " + " | ".join([summary["row"], *cells(summary["ours"]), goal, *cells(summary["peer"])]) + " |"
