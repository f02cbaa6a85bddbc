#!/usr/bin/env python3
"""Prints the time of each op in a trace that llm-bench --trace wrote, and its share of the forward passes.

op_times.py TRACE.json: spans of the engine's thread, which waits for the others at the end of each op.
"""
import argparse
import collections
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", metavar="TRACE.json")
    with open(parser.parse_args().trace, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    names = {(e.get("pid"), e.get("tid")): e["args"].get("name") for e in events if e.get("ph") == "M"}
    times, counts = collections.Counter(), collections.Counter()
    for event in events:
        if event.get("ph") == "X" and names.get((event.get("pid"), event.get("tid"))) == "engine":
            times[event["name"]] += event["dur"]
            counts[event["name"]] += 1
    for name, time in times.most_common():
        print(f"{name:16} {time / 1000:9.2f} ms {100 * time / times['forward']:5.1f} % {counts[name]:7} spans")


if __name__ == "__main__":
    main()
