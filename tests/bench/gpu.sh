#!/usr/bin/env bash
# The CUDA backend on this machine's GPU, unattended: first the tests, then figures as JSON, whatever happens within
# INLAY_BUDGET_S seconds (default 570). Usage: tests/bench/gpu.sh [OUT.json]; beside it OUT.log has what the tests said
# and, where python3 is, OUT.md has the figures beside what kernels/README.md expects.
# INLAY_BUILD: its build folder (default build-gpu), which is made, or brought up to date, where nvcc and ninja are, and
# else taken as it is; so is what gpu_pack.sh packed (a file named "packed" says it). One with a file named "rehearsal"
# holds programs of the emulated device: all of it is then run in tiny shapes, and the figures say that they are none. Models: INLAY_SMOLLM2, INLAY_GEMMA3, else what the cache has, and
# INLAY_BENCH_LAYERS (8) layers of Llama 3 8B with random weights.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${INLAY_BUILD:-$root/build-gpu}
out=${1:-gpu.json}
log=${out%.json}.log
cache=${INLAY_CACHE:-$HOME/.cache/inlay}
scratch=$(mktemp -d)
models=$scratch
export PATH="$PATH:/usr/local/cuda/bin"

say() { echo "gpu.sh: $*" >&2; }
die() { say "$*"; exit 1; }
plain() { tr '\n' ' ' | tr -d '\000-\037"\\' | sed 's/ *$//'; }  # what may stand in a string of JSON
# within SECONDS COMMAND...: at most so long, and not past the budget. 124: ended, or 125: not begun.
within() {
  local left=$((${INLAY_BUDGET_S:-570} - SECONDS)) limit=$1
  shift
  [ "$left" -gt "$limit" ] || limit=$left
  [ "$limit" -gt 0 ] || return 125
  timeout -k 5 "$limit" "$@"
}

tests="not begun" parts="" failures="" written=""
fail() { failures+="${failures:+, }\"$(plain <<<"$1")\""; }
# part NAME SECONDS COMMAND...: the lines that it wrote whole become figures, how it ended is told.
part() {
  local name=$1 limit=$2 begin=$SECONDS result=ok code=0
  shift 2
  within "$limit" "$@" >"$scratch/part" 2>"$scratch/part.err" || code=$?
  case $code in
    0) ;;
    124 | 137) result="not finished" ;;
    125) result="no time was left" ;;
    *) result="exit code $code: $(tail -n 1 "$scratch/part.err" | plain)" ;;
  esac
  grep '^{.*}$' "$scratch/part" >"$scratch/lines"
  grep '"copy_gb_per_s"' "$scratch/lines" >>"$scratch/limits"
  parts+="${parts:+, }{\"part\": \"$name\", \"result\": \"$result\", \"seconds\": $((SECONDS - begin))}"
  [ "$result" = ok ] || { say "$name: $result"; fail "$name: $result"; }
  return $code
}
figures() { grep -v '"copy_gb_per_s"' "$scratch/lines" >>"$scratch/figures"; }

write_json() {
  [ -z "$written" ] || return
  written=yes
  {
    printf '{%s"gpu": "%s", "commit": "%s", "tests": "%s", "failures": [%s], "seconds": %d,\n' "${rehearsal:+\"rehearsal\": true, }" \
      "$(plain <<<"$gpu")" "$(git -C "$root" describe --always --dirty 2>/dev/null)" "$tests" "$failures" "$SECONDS"
    printf '"limits": %s,\n"parts": [%s],\n"figures": [\n' "$(head -n 1 "$scratch/limits" | grep . || echo null)" "$parts"
    sed '$!s/$/,/' "$scratch/figures"
    echo ']}'
  } >"$out"
}
gpu="" rehearsal=""
touch "$scratch/figures" "$scratch/limits" "$scratch/lines"
trap '[ -z "$gpu" ] || write_json; rm -rf "$scratch" "$models"' EXIT
trap 'fail "ended by a signal"; exit 143' TERM INT

command -v nvidia-smi >/dev/null || die "no GPU: nvidia-smi is not here"
gpus=$(timeout 60 nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader) || die "no GPU: $gpus"
gpu=${gpus%%$'\n'*}
say "$gpu"

export INLAY_SMOLLM2=${INLAY_SMOLLM2:-$cache/smollm2-135m-instruct-q4_1.gguf}
export INLAY_GEMMA3=${INLAY_GEMMA3:-$cache/gemma-3-270m-q4_k_m.gguf}
[ -f "$INLAY_SMOLLM2" ] || unset INLAY_SMOLLM2
[ -f "$INLAY_GEMMA3" ] || unset INLAY_GEMMA3

if [ -f "$folder/rehearsal" ]; then
  rehearsal=yes
  say "a rehearsal on the emulated device: no figure means anything"
fi
if [ -f "$folder/packed" ]; then
  folder=$(cd "$folder" && pwd)
  export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" INLAY_PACK=$folder INLAY_ROOT=$root
elif [ -z "$rehearsal" ] && command -v nvcc >/dev/null && command -v ninja >/dev/null; then
  target=$(echo "$gpu" | cut -d, -f2 | tr -d ' .')
  [ "$target" = 90 ] && target=90a
  within 60 cmake -S "$root" -B "$folder" -G Ninja -DINLAY_CUDA=ON -DINLAY_CUDA_TARGETS="$target" >"$scratch/build" 2>&1 &&
    within 400 ninja -C "$folder" gpu_tests cuda_bench synthetic_model llm-bench >>"$scratch/build" 2>&1 ||
    { tail -n 40 "$scratch/build" >&2; fail "the build"; die "the build failed, or took too long: run again, it goes on where it was; or gpu_pack.sh elsewhere"; }
fi
# Where the library may be that no linker's cache knows: a toolkit's folder, Python's packages.
if ! ldconfig -p 2>/dev/null | grep -q 'libcublasLt\.so\.1[23]'; then
  for library in /usr/local/cuda*/{lib64,targets/*/lib}/libcublasLt.so.1[23] \
    "$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)"/nvidia/*/lib/libcublasLt.so.1[23]; do
    [ -e "$library" ] || continue
    export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$library")"
    say "cuBLASLt: $library"
    break
  done
fi
cuda_bench=$folder/tests/bench/cuda_bench
[ -x "$cuda_bench" ] || { fail "no build"; die "no build in $folder, and no nvcc and ninja to make one"; }

# Correctness first: figures of wrong answers are worth nothing. A test that skips says that the library sees no GPU.
# Half of the time that is left, so that there are figures too.
within $(((${INLAY_BUDGET_S:-570} - SECONDS) / 2)) \
  ctest --test-dir "$folder" -L gpu --output-on-failure --no-tests=error -j 4 >"$log" 2>&1
case $? in
  0) if grep -q '(Skipped)' "$log"; then tests=skipped; else tests=passed; fi ;;
  124 | 125 | 137) tests="not finished" ;;
  *) tests=failed ;;
esac
tail -n 30 "$log" >&2
[ "$tests" = passed ] || fail "tests: $tests"
while IFS= read -r name; do fail "$name"; done < <(sed -n 's/^[[:space:]]*[0-9]* - \(OnGpu[^ ]*\) (\(.*\))$/\1: \2/p' "$log")

quick=${rehearsal:+--quick}
part decode 100 "$cuda_bench" $quick decode; figures

# model NAME FILE SHAPE WORKLOAD FLAG...: a run of llm-bench, with what its steps read beside the rate of a copy.
llm_bench=$folder/samples/llm-bench
copy_rate=$(sed -n '1s/.*"copy_gb_per_s": \([0-9.]*\).*/\1/p' "$scratch/limits")
model() {
  local name=$1 file=$2 shape=$3
  part "model $name, $shape" 60 "$llm_bench" --kernels cuda --model "$file" --workload "${@:4}"
  awk -v begin="{${rehearsal:+\"rehearsal\": true, }\"what\": \"model $name\", \"shape\": \"$shape\"" -v rate="${copy_rate:-0}" '
    function field(name) {
      if (!match($0, "\"" name "\": [0-9.]+")) return 0
      return substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4) + 0
    }
    {
      us = field("step_us"); bytes = field("step_bytes"); floor_us = rate > 0 ? bytes / rate / 1e3 : 0
      share = us > 0 ? floor_us / us : 0
      printf "%s, \"bytes\": %.0f, \"us\": %.2f, \"floor_us\": %.2f, \"of_floor\": %.3f, \"of_copy_rate\": %.3f, %s\n",
        begin, bytes, us, floor_us, share, share, substr($0, 2)
    }' "$scratch/lines" >>"$scratch/figures"
}
# Its figure is the rate of decoding; each of the others switches one thing off.
variants=("" --no-graphs --no-run-ahead)
decode=(--prompt-tokens 128 --tokens 128) streams=(--streams 256 --prompt-tokens 32 --tokens 64)
[ -z "$rehearsal" ] || decode=(--prompt-tokens 4 --tokens 3) streams=(--streams 3 --prompt-tokens 4 --tokens 3)
layers=${INLAY_BENCH_LAYERS:-8}
of="$layers layers of Llama 3 8B"
[ -z "$rehearsal" ] || of="a tiny Llama"
# Memory, where there is room for a file of some 5 GB, saves the time of a slow disk.
if [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt $((layers * 1000000)) ] 2>/dev/null; then
  models=$(mktemp -d -p /dev/shm)
fi
for type in bf16 fp8 q4_k; do
  file=$models/$type.gguf
  part "synthetic_model $type" 60 "$folder/tests/bench/synthetic_model" "$file" --type "$type" --layers "$layers" ${rehearsal:+--tiny} || continue
  for variant in "${variants[@]}"; do
    model "$type" "$file" "$of, 1 stream${variant:+, $variant}" decode "${decode[@]}" $variant
    model "$type" "$file" "$of, ${streams[1]} streams${variant:+, $variant}" streams "${streams[@]}" $variant
  done
  [ "$type" = q4_k ] ||
    model "$type" "$file" "$of, ${streams[1]} streams, --no-batch-invariant" streams "${streams[@]}" --no-batch-invariant
  rm -f "$file"
done

for name in attention prefill logits; do part "$name" 100 "$cuda_bench" $quick "$name"; figures; done

[ -n "$rehearsal" ] || for file in ${INLAY_SMOLLM2:-} ${INLAY_GEMMA3:-}; do
  name=$(basename "$file" .gguf)
  model "$name" "$file" "prefill 512" prefill --prompt-tokens 512
  model "$name" "$file" "1 stream" decode --tokens 128
  model "$name" "$file" "32 streams" streams --streams 32 --tokens 64
done
write_json
command -v python3 >/dev/null && python3 -B "$root/tests/bench/gpu_report.py" "$out" >"${out%.json}.md"
say "tests $tests; figures in $out, what the tests said in $log"
[ -z "$failures" ]
