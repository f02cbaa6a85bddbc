"""Fails when a constant of a released header is gone from today's or has another value. Usage: check_constants.py OLD NEW"""
import re
import sys

MAY_GROW = {"LLM_ABI_MINOR"}


def constants(path):
    with open(path) as header:
        text = header.read().replace("\\\n", " ")
    return dict(re.findall(r"^#define (LLM_\w+)\s+(-?\w+)", text, re.MULTILINE))


def main():
    old, new = (constants(path) for path in sys.argv[1:])
    assert len(old) > 50, f"only {len(old)} constants were found in {sys.argv[1]}"
    wrong = [f"{name} was {value}, is {new.get(name)}" for name, value in old.items()
             if name not in MAY_GROW and new.get(name) != value]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
