#!/usr/bin/env bash
# Answers a question with SmolLM2-135M-Instruct: installs what is missing, gets the model, builds, runs.
# Usage: samples/quickstart.sh ["prompt"]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tests/support/setup.sh"

prompt=${1:-Why is the sky blue?}
install_build_packages
model=$(fetch_smollm2)
say "building (the first time takes a few minutes)"
build "$INLAY_ROOT/build" -DINLAY_BUILD_TESTS=OFF
chat=$(mktemp)
trap 'rm -f "$chat"' EXIT
python3 -c 'import json, sys; json.dump([{"role": "user", "content": sys.argv[1]}], open(sys.argv[2], "w"))' "$prompt" "$chat"
"$INLAY_ROOT/build/samples/llm-generate" --model "$model" --chat "$chat" --model-sampling --max-tokens 256
