"""Reads the output of print_metrics with Prometheus' own Python parser. Exits 77 (skipped) where it is not installed."""
import subprocess
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's package, whichever Python runs this
try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    print("skipped: the Python package prometheus_client is not installed")
    sys.exit(77)

text = subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout
families = {family.name: family for family in text_string_to_metric_families(text)}
samples = {sample.name: sample for family in families.values() for sample in family.samples}


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, expected {wanted}")


expect("type", families["vllm:time_to_first_token_seconds"].type, "histogram")
expect("type", families["vllm:generation_tokens"].type, "counter")
expect("tokens", samples["vllm:generation_tokens_total"].value, 4)
expect("engine", samples["vllm:num_requests_running"].labels["engine"], "0")
expect("block size", samples["vllm:cache_config_info"].labels["block_size"], "16")
for name in ("vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:lora_requests_info"):
    expect(name, families[name].type, "gauge")
expect("blocks", samples["vllm:cache_config_info"].labels["num_gpu_blocks"], "32")
edges = [s.labels["le"] for s in families["vllm:time_to_first_token_seconds"].samples if "le" in s.labels]
expect("edges", [float(edge) for edge in edges],
       [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
        float("inf")])
print(f"{len(families)} families, {sum(len(f.samples) for f in families.values())} samples")
