#!/usr/bin/env bash
# Writes inlay-sys/src/bindings.rs from llm.h with Debian's bindgen. Usage: bindings.sh [OUTPUT [bindgen argument ...]]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
output=${1:-$here/inlay-sys/src/bindings.rs}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- --no-layout-tests  # thousands of lines, which the test generates for itself
bindgen --allowlist-function 'llm_.*' --allowlist-type 'llm_.*' --allowlist-var 'LLM_.*' --size_t-is-usize "$@" \
  --output "$output" "$here/../../include/inlay/llm.h"
