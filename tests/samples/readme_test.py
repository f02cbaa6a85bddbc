#!/usr/bin/env python3
"""The C program in README.md is samples/01_complete.c, letter for letter (which other tests compile and run)."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
blocks = re.findall(r"^```c\n(.*?)^```$", (root / "README.md").read_text(), re.M | re.S)
sample = (root / "samples/01_complete.c").read_text()
if sample not in blocks:
    sys.exit("README.md does not show samples/01_complete.c as it is")
