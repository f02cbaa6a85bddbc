#!/usr/bin/env python3
"""From the start of a process to its first token, and what bounds it from below. Usage: cold.py PROGRAM FILE ... [--cold]

PROGRAM is cold_start; packs are read and mapped. compare.py runs the same beside llama.cpp. --cold: also opening files that
are not in the page cache. For packs: what a second process adds to the memory when both map the file.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from child import run_child

CHUNK_BYTES = 1 << 20
STAGES = ("open_ns", "engine_ns", "first_ns")
ALLOWED_RATIO, ALLOWED_S = 1.3, 0.015  # target: 1.3 x (read of the file + warm prefill) + 15 ms


def read_seconds(path):
    """Time to read the file from its start to its end into one small buffer: what the kernel's copying takes, no more."""
    buffer = bytearray(CHUNK_BYTES)
    begin = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - begin


def start(program, path, tokens, how, timeout_s, options=()):
    """A process that opens the file (how: read or map) and computes a prompt: {"start_s": from its start to the first token,
    "open_s", "prefill_s": of such a prompt when it is warm, "stages_s", "raw", and Child.about()}."""
    child = run_child([program, path, tokens, how, *options], timeout_s)
    raw = child.json_lines()[0]
    return {"start_s": child.first_output_s, "open_s": raw["open_ns"] / 1e9, "prefill_s": raw["warm_ns"] / 1e9,
            "stages_s": [raw[stage] / 1e9 for stage in STAGES], "raw": raw, **child.about()}


def measure(row, model, setting, ours, peer, pairs):
    """[{"ours": start, "peer": start, "read_s"}] as the engines' `start` returns them."""
    with tempfile.TemporaryDirectory(prefix="inlay-pack-") as folder:
        file = model
        if row.packed:
            file = pathlib.Path(folder) / f"{pathlib.Path(model).stem}.llmpack"
            ours.pack(model, file)
        run = {"ours": lambda: ours.start(row, file), "peer": lambda: peer.start(row, model, setting)}
        for path in {file, model}:
            read_seconds(path)  # into the page cache
        taken = []
        for index in range(pairs):
            order = ("ours", "peer") if index % 2 == 0 else ("peer", "ours")
            taken.append({"read_s": read_seconds(file), **{who: run[who]() for who in order}})
        return taken


def summarise_ours(taken):
    """Medians, and how (the start - 15 ms) relates to (the read + the warm prefill), run by run."""
    middle = lambda values: statistics.median(list(values))
    read_s, prefill_s = middle(times["read_s"] for times in taken), middle(times["ours"]["prefill_s"] for times in taken)
    ratios = [(times["ours"]["start_s"] - ALLOWED_S) / (times["read_s"] + times["ours"]["prefill_s"]) for times in taken]
    return {
        "read_s": read_s, "prefill_s": prefill_s, "target_s": ALLOWED_RATIO * (read_s + prefill_s) + ALLOWED_S,
        "above_median": middle(ratios), "above_min": min(ratios), "above_max": max(ratios),
        "ours_start_s": middle(times["ours"]["start_s"] for times in taken),
        "ours_open_s": middle(times["ours"]["open_s"] for times in taken),
        "stages_s": [middle(stage) for stage in zip(*(times["ours"]["stages_s"] for times in taken))],
    }


def summarise(row, taken):
    ratios = [times["ours"]["start_s"] / times["peer"]["start_s"] for times in taken]
    return {
        "row": row.name, "packed": row.packed, "ratio_median": statistics.median(ratios), "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "others_cores": max(times[who]["others_cores"] for times in taken for who in ("ours", "peer")),
        **{f"peer_{key}": statistics.median(times["peer"][key] for times in taken) for key in ("start_s", "open_s")},
        **summarise_ours(taken), "raw": taken,
    }


def _ms(seconds):
    return f"{1000 * seconds:.1f}"


def _range(summary, name):
    return f"{summary[name + '_median']:.2f} [{summary[name + '_min']:.2f}, {summary[name + '_max']:.2f}]"


def _ours_cells(summary):
    return [_ms(summary["ours_start_s"]), " + ".join(map(_ms, summary["stages_s"])),
            f"{_ms(summary['read_s'])} + {_ms(summary['prefill_s'])}", _range(summary, "above")]


OURS_HEADER = ("Inlay, start to first token | of it: open model + open engine + first token | read of the file + warm prefill | "
               "(start - 15) / (read + prefill): median [min, max]")
HEADER = (f"| cold start, ms | {OURS_HEADER} | goal for a pack | llama.cpp | of it: open model | ratio: median [min, max] |\n"
          "|---|---|---|---|---|---|---|---|---|")


def format_row(summary):
    reached = "-" if not summary["packed"] else f"<= {ALLOWED_RATIO} " + (
        "yes" if summary["above_median"] <= ALLOWED_RATIO else "**no**")
    return "| " + " | ".join([summary["row"], *_ours_cells(summary), reached, _ms(summary["peer_start_s"]),
                              _ms(summary["peer_open_s"]), _range(summary, "ratio")]) + " |"


def _drop(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold_file(program, path, how, rounds, timeout_s):
    """Rates of opening a file that is not in the page cache, in those of reading it; and that of the last read, in bytes/s."""
    rates = []
    for _ in range(rounds):
        _drop(path)
        raw_s = read_seconds(path)
        _drop(path)
        rates.append(raw_s / start(program, path, 16, how, timeout_s)["open_s"])
    return rates, os.path.getsize(path) / raw_s


def _pss_bytes(processes):
    total = 0
    for process in processes:
        with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total * 1024


def shared_memory(program, path):
    """(PSS of one process that maps the pack, of two, bytes of weights)"""
    processes, sizes = [], []
    try:
        for _ in range(2):
            process = subprocess.Popen([program, path, "16", "map", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            processes.append(process)
            process.stdout.readline()  # at the first token
            weights = json.loads(process.stdout.readline())["weights_bytes"]
            sizes.append(_pss_bytes(processes))
    finally:
        for process in processes:
            process.communicate()
    return *sizes, weights


def _print_file(arguments, path):
    name, packed = os.path.basename(path), path.endswith(".llmpack")
    for how in ("read", "map") if packed else ("read",):
        for tokens in arguments.tokens:
            read_seconds(path)
            taken = [{"read_s": read_seconds(path), "ours": start(arguments.program, path, tokens, how, arguments.timeout)}
                     for _ in range(arguments.rounds)]
            summary = summarise_ours(taken)
            tokenizer_s = statistics.median(times["ours"]["raw"]["tokenizer_ns"] for times in taken) / 1e9
            print("| " + " | ".join([f"{name}, {how}, {tokens} tokens", *_ours_cells(summary), _ms(tokenizer_s)]) + " |",
                  flush=True)
    if arguments.cold:
        for how in ("read", "map") if packed else ("read",):
            rates, raw_rate = cold_file(arguments.program, path, how, arguments.rounds, arguments.timeout)
            print(f"\n{name}, {how}, not in the page cache: open at {statistics.median(rates):.2f} [{min(rates):.2f}, "
                  f"{max(rates):.2f}] of the raw read rate ({raw_rate / 1e9:.2f} GB/s)", flush=True)
    if packed:
        one, two, weights = shared_memory(arguments.program, path)
        print(f"\n{name} mapped: one process has {one / 2**20:.0f} MiB (PSS), a second one adds {(two - one) / 2**20:.0f} MiB, "
              f"{(two - one) / weights:.1%} of the weights\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, nargs="*", default=[16, 128, 512])
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one process may take")
    parser.add_argument("--cold", action="store_true", help="also from files that are not in the page cache")
    arguments = parser.parse_args()
    print(f"| cold start, ms | {OURS_HEADER} | tokenizer |\n|---|---|---|---|---|---|")
    for path in arguments.files:
        _print_file(arguments, path)


if __name__ == "__main__":
    main()
