#!/usr/bin/env python3
"""draw_curves.py DATA.json ...: a PNG beside each data file of compare.py --plots. Needs matplotlib, no display."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (after the choice of the backend)

ENGINES = (("ours", "Inlay", "#0b6e99", "o"), ("peer", "llama.cpp", "#c2571a", "s"))


def draw(path):
    data = json.loads(path.read_text())
    xs = [point["x"] for point in data["points"]]
    figure, axes = pyplot.subplots(figsize=(7.5, 4.6), dpi=140)
    for key, label, colour, marker in ENGINES:
        ys = [point[key] for point in data["points"]]
        axes.plot(xs, ys, marker=marker, color=colour, label=label, linewidth=2)
        for x, y in zip(xs, ys):
            axes.annotate(f"{y:.3g}" if y < 100 else f"{y:.0f}", (x, y), textcoords="offset points", xytext=(0, 7),
                          ha="center", fontsize=8, color=colour)
    if data["x_label"] == "sequences":
        axes.set_xscale("log", base=2)
        axes.set_xticks(xs, [str(x) for x in xs])
    axes.set_ylim(0, 1.12 * max(point[key] for point in data["points"] for key, *_ in ENGINES))
    axes.margins(x=0.06)
    axes.set_xlabel(data["x_label"])
    axes.set_ylabel(data["y_label"])
    axes.set_title(data["title"], fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend()
    about = f"{data['machine']['cpu']}, {data['machine']['threads']} threads; Inlay {data['commit']}; {data['date']}"
    figure.text(0.99, 0.01, about, ha="right", fontsize=7, color="#555555")
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(path.with_suffix(".png"))
    pyplot.close(figure)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        draw(pathlib.Path(name))
