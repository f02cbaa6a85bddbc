#!/usr/bin/env bash
# Builds and runs the tests. Usage: tests/run.sh [--all] [ctest argument ...]
#   --all   also fetches Gemma 3 270M (250 MB) and runs the long cases: perplexities, 10x the oracle's workloads
# INLAY_BUILD names the build folder (default build-tests), INLAY_CMAKE_ARGS adds CMake arguments.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/support/setup.sh"

all=0
if [ "${1:-}" = --all ]; then
  all=1
  shift
fi

# A model that cannot be fetched skips its tests, which say so; it never fails the run.
try_fetch() {  # VARIABLE FUNCTION
  local path
  if path=$($2); then
    export "$1=$path"
  else
    say "$1 is not set: the tests of that model will be skipped"
  fi
}

install_build_packages
install_packages libgtest-dev libgmock-dev abigail-tools python3-prometheus-client
(install_rust_packages) || say "the tests of samples/rust will be skipped"
(install_cuda_packages) || say "the tests of the CUDA backend will be left out"
try_fetch INLAY_SMOLLM2 fetch_smollm2
if [ $all = 1 ]; then
  try_fetch INLAY_GEMMA3 fetch_gemma3
  export INLAY_FULL=1
fi

folder=${INLAY_BUILD:-$INLAY_ROOT/build-tests}
say "building in $folder"
# shellcheck disable=SC2086
build "$folder" -DINLAY_BUILD_TESTS=ON -DINLAY_DCHECK=ON ${INLAY_CMAKE_ARGS:-}
say "built in ${SECONDS} s; testing"
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$(nproc)" "$@"
say "done in ${SECONDS} s"
