#!/usr/bin/env bash
# The CUDA backend on this machine's GPU, unattended, within 10 minutes: first the tests, then figures as JSON.
# Usage: tests/bench/gpu.sh [OUT.json]   INLAY_BUILD: its build folder (default build-gpu), which is made, or brought up to
# date, where nvcc and ninja are, and else taken as it is. Models: INLAY_SMOLLM2, INLAY_GEMMA3, else what the cache has.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${INLAY_BUILD:-$root/build-gpu}
out=${1:-gpu.json}
cache=${INLAY_CACHE:-$HOME/.cache/inlay}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { echo "gpu.sh: $*" >&2; }
export INLAY_SMOLLM2=${INLAY_SMOLLM2:-$cache/smollm2-135m-instruct-q4_1.gguf}
export INLAY_GEMMA3=${INLAY_GEMMA3:-$cache/gemma-3-270m-q4_k_m.gguf}
[ -f "$INLAY_SMOLLM2" ] || unset INLAY_SMOLLM2
[ -f "$INLAY_GEMMA3" ] || unset INLAY_GEMMA3

gpu=$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader | head -n 1) || { say "no GPU"; exit 1; }
say "$gpu"
if command -v nvcc >/dev/null && command -v ninja >/dev/null; then
  target=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  [ "$target" = 90 ] && target=90a
  cmake -S "$root" -B "$folder" -G Ninja -DINLAY_CUDA=ON -DINLAY_CUDA_TARGETS="$target" >"$scratch/build" 2>&1 &&
    ninja -C "$folder" gpu_tests cuda_linear_bench llm-bench >>"$scratch/build" 2>&1 ||
    { tail -n 40 "$scratch/build" >&2; say "the build failed"; exit 1; }
fi

# Correctness first: figures of wrong answers are worth nothing.
if timeout 240 ctest --test-dir "$folder" -L gpu --output-on-failure --no-tests=error -j 4 >"$scratch/tests" 2>&1; then
  tests=passed
else
  tests=failed
fi
tail -n 30 "$scratch/tests" >&2

timeout 150 "$folder/tests/bench/cuda_linear_bench" >"$scratch/figures"
bench() {  # MODEL WORKLOAD FLAG...
  timeout 60 "$folder/samples/llm-bench" --kernels cuda --model "$1" --workload "$2" "${@:3}" >>"$scratch/figures"
}
for model in ${INLAY_SMOLLM2:-} ${INLAY_GEMMA3:-}; do
  bench "$model" prefill --prompt-tokens 512
  bench "$model" decode --tokens 128
  bench "$model" streams --streams 32 --tokens 64
done
{
  printf '{"gpu": "%s", "commit": "%s", "tests": "%s", "figures": [\n' "$gpu" \
    "$(git -C "$root" describe --always --dirty 2>/dev/null)" "$tests"
  paste -sd, "$scratch/figures" | sed 's/},{/},\n{/g'
  echo ']}'
} >"$out"
say "tests $tests; figures in $out"
[ "$tests" = passed ]
