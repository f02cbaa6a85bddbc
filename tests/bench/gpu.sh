#!/usr/bin/env bash
# The CUDA backend on this machine's GPU, unattended: first the tests, then figures as JSON, whatever happens within
# INLAY_BUDGET_S seconds (default 570). Usage: tests/bench/gpu.sh [OUT.json]; beside it OUT.log has what the tests said.
# INLAY_BUILD: its build folder (default build-gpu), which is made, or brought up to date, where nvcc and ninja are, and
# else taken as it is. Models: INLAY_SMOLLM2, INLAY_GEMMA3, else what the cache has.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${INLAY_BUILD:-$root/build-gpu}
out=${1:-gpu.json}
log=${out%.json}.log
cache=${INLAY_CACHE:-$HOME/.cache/inlay}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PATH="$PATH:/usr/local/cuda/bin"

say() { echo "gpu.sh: $*" >&2; }
die() { say "$*"; exit 1; }
# within SECONDS COMMAND...: at most so long, and not past the budget. 124: ended; its time or the budget was over.
within() {
  local left=$((${INLAY_BUDGET_S:-570} - SECONDS)) limit=$1
  shift
  [ "$left" -gt "$limit" ] || limit=$left
  [ "$limit" -gt 0 ] || return 124
  timeout "$limit" "$@"
}

command -v nvidia-smi >/dev/null || die "no GPU: nvidia-smi is not here"
gpus=$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader) || die "no GPU: $gpus"
gpu=${gpus%%$'\n'*}
say "$gpu"

export INLAY_SMOLLM2=${INLAY_SMOLLM2:-$cache/smollm2-135m-instruct-q4_1.gguf}
export INLAY_GEMMA3=${INLAY_GEMMA3:-$cache/gemma-3-270m-q4_k_m.gguf}
[ -f "$INLAY_SMOLLM2" ] || unset INLAY_SMOLLM2
[ -f "$INLAY_GEMMA3" ] || unset INLAY_GEMMA3

if command -v nvcc >/dev/null && command -v ninja >/dev/null; then
  target=$(echo "$gpu" | cut -d, -f2 | tr -d ' .')
  [ "$target" = 90 ] && target=90a
  within 60 cmake -S "$root" -B "$folder" -G Ninja -DINLAY_CUDA=ON -DINLAY_CUDA_TARGETS="$target" >"$scratch/build" 2>&1 &&
    within 400 ninja -C "$folder" gpu_tests cuda_linear_bench llm-bench >>"$scratch/build" 2>&1 ||
    { tail -n 40 "$scratch/build" >&2; die "the build failed, or took too long: run again, it goes on where it was"; }
fi
[ -x "$folder/tests/bench/cuda_linear_bench" ] || die "no build in $folder, and no nvcc and ninja to make one"

# Correctness first: figures of wrong answers are worth nothing. A test that skips says that the library sees no GPU.
within 240 ctest --test-dir "$folder" -L gpu --output-on-failure --no-tests=error -j 4 >"$log" 2>&1
case $? in
  0) if grep -q '(Skipped)' "$log"; then tests=skipped; else tests=passed; fi ;;
  124) tests="not finished" ;;
  *) tests=failed ;;
esac
tail -n 30 "$log" >&2
failed=$(sed -n 's/^[[:space:]]*[0-9]* - \(OnGpu[^ ]*\) (\(.*\))$/"\1: \2"/p' "$log" | paste -sd,)

touch "$scratch/figures"
within 120 "$folder/tests/bench/cuda_linear_bench" >>"$scratch/figures" || say "cuda_linear_bench ended with $?"
bench() {  # MODEL WORKLOAD FLAG...
  within 40 "$folder/samples/llm-bench" --kernels cuda --model "$1" --workload "$2" "${@:3}" >>"$scratch/figures" ||
    say "llm-bench $2 of $1 ended with $?"
}
for model in ${INLAY_SMOLLM2:-} ${INLAY_GEMMA3:-}; do
  bench "$model" prefill --prompt-tokens 512
  bench "$model" decode --tokens 128
  bench "$model" streams --streams 32 --tokens 64
done
{
  printf '{"gpu": "%s", "commit": "%s", "tests": "%s", "tests_not_passed": [%s], "seconds": %d, "figures": [\n' "$gpu" \
    "$(git -C "$root" describe --always --dirty 2>/dev/null)" "$tests" "$failed" "$SECONDS"
  grep '^{.*}$' "$scratch/figures" | sed '$!s/$/,/'  # whole lines: the last program may have been ended
  echo ']}'
} >"$out"
say "tests $tests; figures in $out, what the tests said in $log"
[ "$tests" = passed ]
