"""From pairs of measurements to ratios, shares of the limit and Markdown tables."""
import statistics

import busy
import cold
import memory


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


def _others(summary, names):
    """A cell for each other engine: a number, or a dash where it could not run the row."""
    values = summary.get("others", {})
    return [f"{_number(values[name])} {summary['unit']}" if values.get(name) else "-" for name in names]


def format_row(summary, others=()):
    shares, limit = _shares(summary)
    ratio = f"{summary['ratio_median']:.2f} [{summary['ratio_min']:.2f}, {summary['ratio_max']:.2f}]"
    cells = [summary["row"], f"{_number(summary['ours'])} {summary['unit']}", f"{_number(summary['peer'])} {summary['unit']}",
             ratio, _goal(summary), shares, limit, *_others(summary, others)]
    return "| " + " | ".join(cells) + " |"


def _header(others):
    cells = ["workload", "Inlay", "llama.cpp", "ratio: median [min, max]", "goal",
             "share of the limit: Inlay / llama.cpp", "limit", *others]
    return "| " + " | ".join(cells) + " |\n" + "|---" * len(cells) + "|"


QUIET_CORES = 0.1  # that others may keep busy before a row is called disturbed


def format_disturbed(report):
    """A line for the rows beside whose runs other processes took part of the machine; none: nothing."""
    rows = [f"{summary['row']} ({summary['others_cores']:.2f} cores)" for key in ("rows", "busy", "cold")
            for summary in report[key] if summary.get("others_cores", 0) > QUIET_CORES]
    return ["", "Disturbed by other processes, at the worst of each row's runs: " + "; ".join(rows) + "."] if rows else []


TABLES = {"memory": memory, "busy": busy, "cold": cold}


def join(earlier, measured_now, order, result):
    """`result` with what an earlier report says of the rows that are not measured now; `order`: all rows' names."""
    joined = dict(result)
    kept = lambda name: name not in measured_now
    for table in ("rows", *TABLES):
        summaries = [summary for summary in earlier.get(table, []) if kept(summary["row"])] + result[table]
        joined[table] = sorted(summaries, key=lambda summary: (*order, summary["row"]).index(summary["row"]))
    for key in ("raw", "sweeps"):
        joined[key] = {**{name: value for name, value in earlier.get(key, {}).items() if kept(name)}, **result[key]}
    joined["skipped"] = [pair for pair in earlier.get("skipped", []) if kept(pair[0])] + result["skipped"]
    joined["others"] = sorted({*earlier.get("others", []), *result["others"]})
    joined["kernels"] = result["kernels"] or earlier.get("kernels", "")
    return joined


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
        f"Limits at the start (a row's share is of those just before it): read {limits['read_gb_per_s']:.1f} GB/s, int8 {limits['int8_gop_per_s']:.0f} GOP/s, f32 "
        f"{limits['f32_gflop_per_s']:.0f} GFLOP/s. Command: `{report['command']}`.",
    ]
    if report["rows"]:
        lines += ["", _header(report["others"]), *[format_row(summary, report["others"]) for summary in report["rows"]]]
    for key, table in TABLES.items():
        if report[key]:
            lines += ["", table.HEADER, *[table.format_row(summary) for summary in report[key]]]
    lines += format_disturbed(report)
    if report["skipped"]:
        lines += ["", "Not measured:", *[f"- {name}: {why}" for name, why in report["skipped"]]]
    lines += ["", "The peer's settings, each tried once, the best first (it is the one compared with):",
              *[format_sweep(name, tried) for name, tried in report["sweeps"].items()]]
    return "\n".join(lines) + "\n"
