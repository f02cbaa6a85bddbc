#!/usr/bin/env python3
"""draw_pressure.py plots.json: PNGs beside the file that pressure.py has written. Needs matplotlib, no display."""
import csv
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (after the choice of the backend)

OURS, OTHER = "#0b6e99", "#c2571a"


def steps(path):
    with open(path, encoding="ascii") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def draw_gaps(timelines, folder):
    """A step's time is the gap between two tokens of each stream that decodes in it."""
    figure, axes = pyplot.subplots(figsize=(7.5, 4.2), dpi=140)
    for name, label, colour in (("no chunks", "whole prompts", OTHER), ("chunks", "chunks under a target of 50 ms", OURS)):
        rows = [row for row in steps(timelines[name]) if row["decodes"] > 0]
        axes.plot([row["time_s"] for row in rows], [row["step_s"] * 1e3 for row in rows], color=colour, label=label,
                  linewidth=1, marker=".", markersize=3)
    axes.set_yscale("log")
    axes.set_xlabel("time, s")
    axes.set_ylabel("gap between tokens, ms")
    axes.set_title("Streams while documents of 6,000 tokens arrive", fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, folder / "gap-over-time.png")


def draw_goodput(overload, folder):
    figure, axes = pyplot.subplots(figsize=(7.5, 4.2), dpi=140)
    for name, colour in (("admission", OURS), ("no admission", OTHER)):
        for kind, style in (("simulated", "-"), ("real", "")):
            runs = overload[kind]["curves"][name]
            axes.plot([run["load"] for run in runs], [run["goodput"] for run in runs], linestyle=style or "none",
                      marker="o" if style else "x", markersize=4 if style else 9, color=colour,
                      label=f"{name}, {'simulated' if style else 'real engine'}")
    axes.set_xlabel("load, multiples of the largest rate at which 90 % meet all targets")
    axes.set_ylabel("requests a second that meet all targets")
    axes.set_title("Goodput against load", fontsize=11)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, folder / "goodput-against-load.png")


def draw_memory(timelines, folder):
    figure, (occupancy, preempted) = pyplot.subplots(2, 1, figsize=(7.5, 5.6), dpi=140, sharex=True)
    for name, colour in (("predict", OURS), ("greedy", OTHER)):
        rows = steps(timelines[name])
        times = [row["time_s"] for row in rows]
        total, count = 0.0, []
        for row in rows:
            total += row["preemptions"]
            count.append(total)
        occupancy.plot(times, [100 * row["held"] / row["total"] for row in rows], color=colour, label=name, linewidth=1)
        preempted.plot(times, count, color=colour, label=name)
    occupancy.set_ylabel("held blocks, %")
    occupancy.set_title("200 requests at once, 64 blocks", fontsize=11)
    preempted.set_ylabel("preemptions")
    preempted.set_xlabel("time, s")
    for axes in (occupancy, preempted):
        axes.grid(alpha=0.3)
        axes.legend()
    save(figure, folder / "occupancy-and-preemptions.png")


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    inputs = json.loads(source.read_text())
    draw_gaps(inputs["timelines"], source.parent)
    draw_memory(inputs["timelines"], source.parent)
    if inputs["overload"]:
        draw_goodput(inputs["overload"], source.parent)
