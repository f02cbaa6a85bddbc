#!/usr/bin/env python3
"""Checks each #include "..." of the repository against the table in src/README.md. Prints offenders, exits 1 on any."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOP = {"include", "capi", "kernels", "samples", "tests"}


def read_table():
    """{folder: [(target, except_header or None)]}; a target is a folder or folder/header.h."""
    text = (ROOT / "src/README.md").read_text()
    table = {}
    for line in re.findall(r"^(\w+)\s+->\s+(.*)$", text, re.M):
        targets = []
        for item in re.split(r",\s*(?![^(]*\))", line[1]):
            match = re.fullmatch(r"\s*([\w/.]+)(?:\s+\(not ([\w/.]+)\))?\s*", item)
            if match is None:
                sys.exit(f"src/README.md: cannot read '{item}' in the row of {line[0]}")
            targets.append(match.groups())
        table[line[0]] = targets
    return table


def strip_src(path):
    return path[4:] if path.startswith("src/") else path


def allowed(owner, included, table):
    if included.split("/")[0] == owner:
        return True
    for target, forbidden in table.get(owner, []):
        if target == "include/inlay" and included.startswith("inlay/"):
            return True
        if included == forbidden:
            return False
        if included == target or included.startswith(target + "/"):
            return True
    return False


def main():
    table = read_table()
    files = subprocess.run(["git", "ls-files", "*.h", "*.hpp", "*.c", "*.cc", "*.cu", "*.cuh", "*.def"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()
    offenders = []
    for name in files:
        owner = strip_src(name).split("/")[0]
        if owner in ("tests", "include"):
            continue
        for included in re.findall(r'^\s*#\s*include\s+["<]((?:src|kernels|capi|inlay|tests)/[^">]+)[">]',
                                   (ROOT / name).read_text(), re.M):
            if not allowed(owner, strip_src(included), table):
                offenders.append(f"{name}: {owner} may not include {included}")
    print("\n".join(offenders) or f"includes: {len(files)} files agree with src/README.md")
    return 1 if offenders else 0


if __name__ == "__main__":
    sys.exit(main())
