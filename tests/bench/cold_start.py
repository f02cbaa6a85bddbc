#!/usr/bin/env python3
"""How fast a process is at its first token, from a model file and from its pack. Usage: cold_start.py PROGRAM FILE ...

PROGRAM is cold_start. For each file: time to the first token against reading the file from the page cache and the warm
prefill; opening a file that is not in the page cache against reading it; for a pack, what a second process adds when mapped.
"""
import argparse
import json
import os
import statistics
import subprocess
import time


def read_file(path):
    buffer = bytearray(1 << 20)
    start = time.monotonic_ns()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.monotonic_ns() - start


def drop(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(program, path, tokens, how):
    start = time.monotonic_ns()
    done = subprocess.run([program, path, str(tokens), how], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    result["total_ns"] = result["first_token_at_ns"] - start
    return result


def first_token(program, path, tokens, how, rounds):
    read_file(path)
    ratios, rows = [], []
    for _ in range(rounds):
        read_ns = read_file(path)
        row = run(program, path, tokens, how)
        floor = read_ns + row["warm_ns"]
        ratios.append((row["total_ns"] - 15e6) / floor)
        rows.append((row, read_ns))
    row, read_ns = sorted(rows, key=lambda pair: pair[0]["total_ns"])[len(rows) // 2]
    ms = {key[:-3]: round(value / 1e6, 1) for key, value in row.items() if key.endswith("_ns") and "_at_" not in key}
    print(f"{os.path.basename(path)} {how}, {tokens} tokens: (total - 15 ms) / (read + warm prefill) = "
          f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]; "
          f"read {read_ns / 1e6:.1f} ms, {json.dumps(ms)}", flush=True)


def cold_file(program, path, how, rounds):
    ratios = []
    for _ in range(rounds):
        drop(path)
        raw_ns = read_file(path)
        drop(path)
        ratios.append(raw_ns / run(program, path, 16, how)["open_ns"])
    print(f"{os.path.basename(path)} {how}, not in the page cache: open at {statistics.median(ratios):.2f} "
          f"[{min(ratios):.2f}, {max(ratios):.2f}] of the raw read rate ({os.path.getsize(path) / raw_ns:.2f} GB/s)",
          flush=True)


def pss(processes):
    total = 0
    for process in processes:
        with open(f"/proc/{process.pid}/smaps_rollup") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total * 1024


def shared_memory(program, path):
    processes, sizes = [], []
    for _ in range(2):
        process = subprocess.Popen([program, path, "16", "map", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        weights = json.loads(process.stdout.readline())["weights_bytes"]
        processes.append(process)
        sizes.append(pss(processes))
    for process in processes:
        process.communicate()
    print(f"{os.path.basename(path)} mapped: one process has {sizes[0] / 2**20:.0f} MiB (PSS), a second one adds "
          f"{(sizes[1] - sizes[0]) / 2**20:.0f} MiB, {(sizes[1] - sizes[0]) / weights:.1%} of the weights", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, nargs="*", default=[16, 128, 512])
    parser.add_argument("--cold", action="store_true", help="also from files that are not in the page cache")
    arguments = parser.parse_args()
    for path in arguments.files:
        pack = path.endswith(".llmpack")
        for how in ("read", "map") if pack else ("read",):
            for tokens in arguments.tokens:
                first_token(arguments.program, path, tokens, how, arguments.rounds)
            if arguments.cold:
                cold_file(arguments.program, path, how, arguments.rounds)
        if pack:
            shared_memory(arguments.program, path)


if __name__ == "__main__":
    main()
