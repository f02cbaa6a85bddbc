"""Every counter of the header and of the Prometheus text stands in capi/README.md.

Usage: counters_documented_test.py llm.h README.md PRINT_METRICS MODEL.gguf
"""
import re
import subprocess
import sys

header, readme = open(sys.argv[1]).read(), open(sys.argv[2]).read()
text = subprocess.run(sys.argv[3:], check=True, capture_output=True, text=True).stdout
documented = set(re.findall(r"`([\w:]+)(?:\{[^`]*\})?`", readme))


def fields(struct):
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (struct, struct), header, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    names = {re.search(r"(\w+)(\[\d+\])?$", line.strip()).group(1) for line in body.split(";") if line.strip()}
    return names - {"struct_size", "reserved"}


wanted = set()
for struct in ("llm_metrics_snapshot", "llm_request_stats", "llm_step_record", "llm_request_record"):
    wanted |= fields(struct)
wanted |= {name for name in fields("llm_model_info") if name.endswith("_ns")}
wanted |= set(re.findall(r"#define (LLM_(?:HISTOGRAM|RECORD)_\w+)", header))
wanted |= {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
missing = sorted(wanted - documented)
if missing:
    sys.exit(f"not in {sys.argv[2]}: {', '.join(missing)}")
known = {name for name in documented if re.match(r"(vllm|inlay):\w", name)}
families = [name for name in wanted if ":" in name]
unknown = sorted(name for name in known if not any(re.fullmatch(family + "(_sum|_count)?", name) for family in families))
if unknown:
    sys.exit(f"documented, but not in the Prometheus text: {', '.join(unknown)}")
print(f"{len(wanted)} names")
