"""From the start of a process to its first token, with the model file in the page cache; and what bounds it from below."""
import concurrent.futures
import os
import pathlib
import statistics
import tempfile
import time

CHUNK_BYTES = 1 << 20
STAGES = ("model_open_s", "engine_open_s", "ttft_s")
ALLOWED_RATIO, ALLOWED_S = 1.3, 0.015  # target: 1.3 x (read of the file + warm prefill) + 15 ms


def read_seconds(path, threads):
    """Time to read the file with so many threads, each into one small buffer: what the kernel's copying takes, no more."""
    size = os.path.getsize(path)
    share = -(-size // threads)

    def read_share(index):
        buffer = bytearray(CHUNK_BYTES)
        with open(path, "rb", buffering=0) as file:
            for offset in range(index * share, min((index + 1) * share, size), CHUNK_BYTES):
                os.preadv(file.fileno(), [buffer], offset)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        begin = time.perf_counter()
        list(pool.map(read_share, range(threads)))
        return time.perf_counter() - begin


def measure(row, model, setting, ours, peer, pairs):
    """[{"ours": start, "peer": start, "read_s", "prefill_s"}] as the engines' `start` returns them."""
    with tempfile.TemporaryDirectory(prefix="inlay-pack-") as folder:
        file = model
        if row.packed:
            file = pathlib.Path(folder) / f"{pathlib.Path(model).stem}.llmpack"
            ours.pack(model, file)
        run = {"ours": lambda: ours.start(row, file), "peer": lambda: peer.start(row, model, setting)}
        for path in {file, model}:
            read_seconds(path, ours.threads)  # into the page cache
        taken = []
        for index in range(pairs):
            order = ("ours", "peer") if index % 2 == 0 else ("peer", "ours")
            times = {who: run[who]() for who in order}
            times["read_s"] = read_seconds(file, ours.threads)
            times["prefill_s"] = ours.measure(row, file)["raw"]["ttft_s"]
            taken.append(times)
    return taken


def summarise(row, taken):
    middle = lambda values: statistics.median(list(values))
    ratios = [times["ours"]["start_s"] / times["peer"]["start_s"] for times in taken]
    read_s, prefill_s = (middle(times[key] for times in taken) for key in ("read_s", "prefill_s"))
    return {
        "row": row.name, "packed": row.packed, "ratio_median": middle(ratios), "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "others_cores": max(times[who]["others_cores"] for times in taken for who in ("ours", "peer")), "read_s": read_s,
        "prefill_s": prefill_s,
        "target_s": ALLOWED_RATIO * (read_s + prefill_s) + ALLOWED_S,
        **{f"{who}_{key}": middle(times[who][key] for times in taken) for who in ("ours", "peer")
           for key in ("start_s", "open_s")},
        "stages_s": [middle(times["ours"]["raw"][stage] for times in taken) for stage in STAGES], "raw": taken,
    }


HEADER = ("| cold start, ms | Inlay, start to first token | of it: open model + open engine + first token | llama.cpp | of it: "
          "open model | ratio: median [min, max] | read of the file + warm prefill | target: 1.3 x that + 15 |\n"
          "|---|---|---|---|---|---|---|---|")


def format_row(summary):
    ms = lambda seconds: f"{1000 * seconds:.1f}"
    reached = "yes" if summary["ours_start_s"] <= summary["target_s"] else "**no**"
    ratio = f"{summary['ratio_median']:.2f} [{summary['ratio_min']:.2f}, {summary['ratio_max']:.2f}]"
    target = f"<= {ms(summary['target_s'])} " + (reached if summary["packed"] else "(for a pack)")
    return "| " + " | ".join([summary["row"], ms(summary["ours_start_s"]), " + ".join(map(ms, summary["stages_s"])),
                              ms(summary["peer_start_s"]), ms(summary["peer_open_s"]), ratio,
                              f"{ms(summary['read_s'])} + {ms(summary['prefill_s'])}", target]) + " |"
