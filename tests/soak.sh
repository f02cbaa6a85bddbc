#!/usr/bin/env bash
# tests/soak.sh MINUTES [MOST_KIB_PER_MINUTE]: mixed load on one engine; fails when memory grows, a
# counter does not reconcile, or a request is lost. INLAY_BUILD names the build folder (build-tests).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${INLAY_BUILD:-build-tests}
[ -f "$build/build.ninja" ] || cmake -G Ninja -B "$build" >/dev/null
ninja -C "$build" soak >/dev/null
exec "$build/tests/faults/soak" "$@"
