"""What a run held at its peak beside what was planned, and the peer's peak: a table with a line for each row measured."""

GOAL = 1.05  # peak resident / (weights + KV + workspace as planned)


def summarise(row, plan, pairs):
    """pairs: [(ours, peer)] as the engines' `measure` returns them; the worst run of each counts."""
    planned = plan["weights_bytes"] + plan["kv_bytes"] + plan["workspace_bytes"]
    ours = max(ours["peak_resident_bytes"] for ours, _ in pairs)
    return {"row": row.name, "plan": plan, "planned_bytes": planned, "peak_resident_bytes": ours,
            "peer_peak_resident_bytes": max(peer["peak_resident_bytes"] for _, peer in pairs), "ratio": ours / planned,
            "goal": GOAL}


def _mib(size):
    return f"{size / 2**20:,.1f}"


HEADER = ("| memory, MiB | weights + KV + workspace, planned | plan | peak resident | peak / plan | goal | tokenizer, beside | "
          "llama.cpp, peak resident |\n|---|---|---|---|---|---|---|---|")


def format_row(summary):
    plan = summary["plan"]
    parts = " + ".join(_mib(plan[f"{part}_bytes"]) for part in ("weights", "kv", "workspace"))
    reached = "yes" if summary["ratio"] <= summary["goal"] else "**no**"
    return "| " + " | ".join([summary["row"], parts, _mib(summary["planned_bytes"]), _mib(summary["peak_resident_bytes"]),
                              f"{summary['ratio']:.3f}", f"<= {summary['goal']:g} {reached}",
                              _mib(plan["tokenizer_bytes"]), _mib(summary["peer_peak_resident_bytes"])]) + " |"
