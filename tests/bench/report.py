"""From pairs of measurements to ratios, shares of the limit and a Markdown table."""
import statistics


def summarise(row, pairs, limit):
    """pairs: [(ours, peer)] in run order. The ratio is taken within each pair, since the machine's mood drifts."""
    ratios = [ours / peer for ours, peer in pairs]
    summary = {
        "row": row.name, "unit": row.unit, "goal": row.goal, "lower_is_better": row.lower_is_better,
        "ours": statistics.median(ours for ours, _ in pairs), "peer": statistics.median(peer for _, peer in pairs),
        "ratio_median": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios),
        "pairs": [list(pair) for pair in pairs], "limit": limit, "ours_share": None, "peer_share": None,
    }
    if limit:
        summary["ours_share"] = summary["ours"] / limit
        summary["peer_share"] = summary["peer"] / limit
    return summary


def reaches_goal(summary):
    """None: the row has no goal."""
    if not summary["goal"]:
        return None
    if summary["lower_is_better"]:
        return summary["ratio_median"] <= summary["goal"]
    return summary["ratio_median"] >= summary["goal"]


def _number(value):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _goal(summary):
    reached = reaches_goal(summary)
    if reached is None:
        return "-"
    sign = "<=" if summary["lower_is_better"] else ">="
    return f"{sign} {summary['goal']:g} {'yes' if reached else '**no**'}"


def _shares(summary):
    if not summary["limit"]:
        return "-", "-"
    return (f"{100 * summary['ours_share']:.0f} % / {100 * summary['peer_share']:.0f} %", _number(summary["limit"]))


def format_row(summary):
    shares, limit = _shares(summary)
    ratio = f"{summary['ratio_median']:.2f} [{summary['ratio_min']:.2f}, {summary['ratio_max']:.2f}]"
    cells = [summary["row"], f"{_number(summary['ours'])} {summary['unit']}", f"{_number(summary['peer'])} {summary['unit']}",
             ratio, _goal(summary), shares, limit]
    return "| " + " | ".join(cells) + " |"


HEADER = ("| workload | Inlay | llama.cpp | ratio: median [min, max] | goal | share of the limit: Inlay / llama.cpp | limit |\n"
          "|---|---|---|---|---|---|---|")


def format_sweep(row_name, tried):
    tried_text = ", ".join(" ".join(f"{key}={value}" for key, value in setting.items()) + f": {_number(value)}"
                           for setting, value in tried)
    return f"- {row_name}: {tried_text}"


def format_report(report):
    machine, limits = report["machine"], report["limits"]
    lines = [
        f"{machine['cpu']}, {machine['threads']} threads of {machine['cores']} cores, load average {machine['load']:.2f} at the "
        f"start; {report['date']}; Inlay {report['commit']}, kernels {report['kernels'] or '?'}; {report['peer']}.",
        "",
        f"Limits: read {limits['read_gb_per_s']:.1f} GB/s, int8 {limits['int8_gop_per_s']:.0f} GOP/s, f32 "
        f"{limits['f32_gflop_per_s']:.0f} GFLOP/s. Command: `{report['command']}`.",
        "", HEADER,
    ]
    lines += [format_row(summary) for summary in report["rows"]]
    if report["skipped"]:
        lines += ["", "Not measured:", *[f"- {name}: {why}" for name, why in report["skipped"]]]
    lines += ["", "The peer's settings, each tried once, the best first (it is the one compared with):",
              *[format_sweep(name, tried) for name, tried in report["sweeps"].items()]]
    return "\n".join(lines) + "\n"
