#!/usr/bin/env python3
"""The programs in README.md are those of samples/, letter for letter (which other tests compile and run)."""
import pathlib
import re
import sys

SHOWN = {"c": "samples/01_complete.c", "rust": "samples/rust/inlay/examples/complete.rs"}

root = pathlib.Path(sys.argv[1])
readme = (root / "README.md").read_text()
for language, path in SHOWN.items():
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.M | re.S)
    if (root / path).read_text() not in blocks:
        sys.exit(f"README.md does not show {path} as it is")
