#!/usr/bin/env bash
# Checks samples/rust offline. Usage: rust_test.sh CHECK SCRATCH_FOLDER LIBRARY_FOLDER MODEL, where CHECK is
#   bindings   bindings.rs is what bindgen makes of llm.h, and its structs are laid out as the C compiler's
#   test       the crates' own tests         examples   the programs run
#   lint       rustc and rustdoc do not warn; nor do Debian's clippy and rustfmt, where they are installed
#   tokio      the tests and the example of inlay-tokio, from Debian's crates
# Prints "skipped: ..." where a package is missing; tests/support/setup.sh names them all.
set -euo pipefail

check=$1 scratch=$(realpath -m "$2") library=$(realpath "$3") model=$(realpath "$4")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
rust=$root/samples/rust
skip() { echo "skipped: $*"; exit 0; }
need() { command -v "$1" >/dev/null || skip "no $1 (apt-get install $2)"; }

# Debian's tools before others that may be installed, and no configuration of the user's.
export PATH=/usr/bin:$PATH CARGO_HOME=$scratch/cargo-home CARGO_TARGET_DIR=$scratch/target CARGO_NET_OFFLINE=true
export INLAY_LIB_DIR=$library INLAY_TEST_MODEL=$model
mkdir -p "$CARGO_HOME"
need cargo cargo
need rustc rustc
cd "$rust"

# How the bindings are wrapped into lines is rustfmt's choice: compared without.
without_layout() { tr -d ' \n,' <"$1"; }

debian_crates() {
  [ -d /usr/share/cargo/registry/tokio-1.* ] || skip "no tokio (apt-get install librust-tokio-dev)"
  [ -d /usr/share/cargo/registry/futures-core-0.3.* ] || skip "no futures-core (apt-get install librust-futures-core-dev)"
  cargo --config "$rust/debian.toml" "$@"
}

case $check in
  bindings)
    need bindgen "bindgen libclang-common-14-dev"
    bindgen --version | grep -q ' 0\.60\.' || skip "$(bindgen --version) is not Debian 12's 0.60, whose output is committed"
    ./bindings.sh "$scratch/bindings.rs"
    cmp <(without_layout "$scratch/bindings.rs") <(without_layout inlay-sys/src/bindings.rs) ||
      { echo "inlay-sys/src/bindings.rs is not what llm.h says: run samples/rust/bindings.sh"; exit 1; }
    ./bindings.sh "$scratch/layout.rs" --raw-line '#![allow(warnings)]'
    rustc --edition 2021 --test "$scratch/layout.rs" -L "native=$library" -l inlay -o "$scratch/layout"
    "$scratch/layout" --quiet
    ;;
  test)
    cargo test --quiet
    ;;
  examples)
    cargo run --quiet --example complete -- "$model" "The quick brown fox"
    [ "$(cargo run --quiet --example many -- "$model" 16 | grep -c tokens)" = 16 ]
    [ "$(cargo run --quiet --example poll_loop -- "$model" 16 | grep -c tokens)" = 16 ]
    ;;
  lint)
    export CARGO_TARGET_DIR=$scratch/lint RUSTFLAGS="-D warnings" RUSTDOCFLAGS="-D warnings"
    cargo doc --quiet --no-deps
    [ ! -x /usr/bin/cargo-fmt ] || cargo fmt --check
    if [ -x /usr/bin/cargo-clippy ]; then cargo clippy --quiet --all-targets; else cargo check --quiet --all-targets; fi
    ;;
  tokio)
    cd inlay-tokio
    debian_crates test --quiet
    [ "$(debian_crates run --quiet --example chat -- "$model" one two | grep -c tokens)" = 2 ]
    RUSTDOCFLAGS="-D warnings" debian_crates doc --quiet --no-deps
    ;;
  *) echo "unknown check: $check"; exit 2 ;;
esac
