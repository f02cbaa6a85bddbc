#!/usr/bin/env python3
"""Figures of gpu.sh as a table in Markdown, beside the shares that kernels/README.md expects.

Usage: gpu_report.py GPU.json [KERNELS_README]. A row of that table is a figure's when it names its op, its format and its
shape; what it says of "the same" is said of the row above.
"""
import json
import os
import re
import sys

NOMINAL = {"H100": 3350, "H200": 4800, "A100": 2039, "L40S": 864, "B200": 8000}  # GB/s, as their makers say
README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kernels/README.md")


def words(text):
    """Of a row or a figure: lower case, without the comma of thousands, dimensions and plurals."""
    text = re.sub(r"\[[^]]*\]", " ", re.sub(r"(\d),(\d{3})", r"\1\2", text.lower()))
    return [word.rstrip("s") if word.isalpha() else word for word in re.findall(r"[\w.-]+", text)]


def expectations(readme, h200=False):
    """(words of the row, share) of each row of the table of floors that expects one; two are of H100 and of H200."""
    rows, inside, last = [], False, []
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[-1] == "expected of floor":
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not cells[0].startswith("---"):
            own = words(cells[0].replace("the same", ""))
            if cells[0].startswith("the same"):
                own = last + own
            elif "the same" in cells[0]:
                own = own + last[1:]  # of another op
            last = own
            share = re.match(r"(\d+) %(?: / (\d+) %)?", cells[-1])
            if share:
                rows.append((last, int(share.group(2) if h200 and share.group(2) else share.group(1)) / 100))
    return rows


def expected(figure, rows):
    """Of the row that has all of the figure's words and the fewest others; None: there is none."""
    op, *others = words(figure["what"]) + words(figure["shape"])
    found = [(len(row), share) for row, share in rows
             if row[0].startswith(op.split("_")[0]) and set(others) <= set(row + row[0].split("_"))]
    return min(found)[1] if found else None


def percent(share):
    return "" if share is None else f"{100 * share:.0f} %"


def table(result, readme):
    if result.get("rehearsal"):
        yield "**A rehearsal on an emulated device: no figure here is a measurement.**\n"
    yield f"{result['gpu']}, commit {result['commit']}, tests {result['tests']}, {result['seconds']} s\n"
    for failure in result["failures"]:
        yield f"- not well: {failure}"
    if result["limits"]:
        yield "\nlimits: " + ", ".join(f"{name} {value}" for name, value in result["limits"].items()
                                      if name != "rehearsal")
    rows = expectations(readme, "H200" in result["gpu"])
    nominal = next((rate for name, rate in NOMINAL.items() if name in result["gpu"]), None)
    yield ("\n| what | shape | us | floor, us | of floor | expected | of copy rate | of nominal bandwidth | of cuBLASLt |\n"
           "|---|---|---|---|---|---|---|---|---|")
    for figure in result["figures"]:
        if "error" in figure:
            yield f"| {figure['what']} | {figure['shape']} | {figure['error']} | | | | | | |"
            continue
        of_nominal = figure["bytes"] / figure["us"] / 1e3 / nominal if nominal else None
        yield (f"| {figure['what']} | {figure['shape']} | {figure['us']:.1f} | {figure['floor_us']:.1f} | "
               f"{percent(figure['of_floor'])} | {percent(expected(figure, rows))} | "
               f"{percent(figure['of_copy_rate'])} | {percent(of_nominal)} | {percent(figure.get('of_cublaslt'))} |")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    with open(sys.argv[2] if len(sys.argv) > 2 else README, encoding="utf-8") as file:
        readme = file.read()
    print("\n".join(table(result, readme)))


if __name__ == "__main__":
    main()
