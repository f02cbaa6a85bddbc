#!/usr/bin/env bash
# Builds what gpu.sh runs, on a machine with nvcc, for one with a GPU that need not have this project's libraries, and
# packs it. Usage: tests/bench/gpu_pack.sh [TARGET] [OUT.tar.xz], by default for 90a. There: unpack it into a folder, and
# run gpu.sh of a checkout of the same commit with INLAY_BUILD naming that folder. Build folder: INLAY_BUILD, or build-gpu.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${1:-90a}
out=${2:-gpu-$target.tar.xz}
folder=${INLAY_BUILD:-$root/build-gpu}
pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
export PATH="$PATH:/usr/local/cuda/bin"

# Tests look for their data where they run: in a checkout.
cmake -S "$root" -B "$folder" -G Ninja -DINLAY_CUDA=ON -DINLAY_CUDA_TARGETS="$target" -DINLAY_GPU_TEST_ROOT=. >/dev/null
ninja -C "$folder" gpu_tests cuda_bench synthetic_model llm-bench

mkdir -p "$pack/tests/gpu" "$pack/tests/bench" "$pack/samples" "$pack/lib"
programs=("$folder"/tests/gpu/*_on_gpu_test "$folder"/tests/bench/{cuda_bench,synthetic_model} "$folder"/samples/llm-bench)
for program in "${programs[@]}"; do strip -o "$pack/${program#"$folder"/}" "$program"; done
# Libraries, but for those of every system, and CUDA's.
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcu[a-zA-Z]*)\.so' |
  while IFS= read -r library; do strip -o "$pack/lib/$(basename "$library")" "$library"; done
sed -e '/^add_test\|^set_tests_properties/!d' -e "s|\"$folder/|\"\$ENV{INLAY_PACK}/|g" \
  -e 's|_BACKTRACE_TRIPLES ".*")$|WORKING_DIRECTORY "$ENV{INLAY_ROOT}")|' \
  "$folder/tests/gpu/CTestTestfile.cmake" >"$pack/CTestTestfile.cmake"
git -C "$root" describe --always --dirty >"$pack/packed"
tar -C "$pack" -c . | xz --lzma2=preset=2,dict=128MiB >"$out"
ls -l "$out"
