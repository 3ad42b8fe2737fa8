#!/usr/bin/env bash
# Installs what the tests need beyond Go, into this project's folder: Python packages into .venv (Gymnasium for
# golden traces and environments, safetensors, Zig, which compiles C where a compiler is missing, the assembler that
# belongs to wasmtime, an ffmpeg, games of Atari, a checker of types, and rlhost's own package for Python, built from its sources whenever they have changed) and Rust's WebAssembly target. Says what is missing and which one command installs it; the tests that need it say so too.
set -u
cd "$(dirname "$0")/.."

missing() { printf 'tools: %s\n' "$*" >&2; }

python_packages="ziglang==0.17.1 numpy==2.4.6 gymnasium==1.4.0 pettingzoo==1.27.0 safetensors==0.8.0 grpcio==1.85.1 setuptools==84.2.1 tqdm==4.67.1 wasmtime==50.0.1 imageio-ffmpeg==0.6.0 ale-py==0.12.1 mypy==2.4.1 optuna==5.0.0 pygame-ce==2.5.8"

if ! command -v python3 >/dev/null; then
  missing 'python3 is missing: apt-get install python3 python3-venv'
elif [ ! -e .venv/installed ] || [ "$(cat .venv/installed)" != "$python_packages" ]; then
  python3 -m venv .venv &&
    .venv/bin/python -m pip install --quiet --disable-pip-version-check $python_packages &&
    printf '%s' "$python_packages" >.venv/installed ||
    missing 'the Python packages could not be installed into .venv (see above)'
fi

if [ -e .venv/installed ]; then
  if ! command -v "${CC:-cc}" >/dev/null; then
    export CC="$PWD/.venv/bin/python-zig cc" LDSHARED="$PWD/.venv/bin/python-zig cc -shared"
  fi
  .venv/bin/python sdk/python/installed.py --install >/dev/null ||
    missing "rlhost's package for Python could not be built (see above); apt-get install gcc libc6-dev python3-dev"
fi

# Where rustup has no toolchain, a minimal one becomes its default: cargo and rustc are in the path and fail without.
if ! command -v rustup >/dev/null; then
  command -v rustc >/dev/null || missing 'rust is missing: https://rustup.rs'
elif ! rustc --version >/dev/null 2>&1; then
  { rustup toolchain install stable --profile minimal --target wasm32-unknown-unknown --no-self-update && rustup default stable; } >/dev/null 2>&1 ||
    missing 'rustup has no toolchain, and none could be installed: rustup default stable && rustup target add wasm32-unknown-unknown'
elif ! rustup target list --installed 2>/dev/null | grep -q '^wasm32-unknown-unknown$'; then
  rustup target add wasm32-unknown-unknown >/dev/null 2>&1 ||
    missing 'the Rust target is missing: rustup target add wasm32-unknown-unknown'
fi

if ! command -v clang-19 >/dev/null && ! command -v clang >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && apt-get install -y -qq clang-19 lld-19; } >/dev/null 2>&1 ||
    missing 'clang could not be installed; C guests are built with Zig from .venv instead'
fi

# Guests in C and C++ that use their libraries; Zig has its own.
wasi_missing() {
  command -v clang-19 >/dev/null && ! printf '#include <string>\nvoid f(std::string s) { s.resize(9); }\n' |
    clang++-19 --target=wasm32-wasi -mexec-model=reactor -fno-exceptions -x c++ - -o /dev/null >/dev/null 2>&1
}
wasi_packages='wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32'
if wasi_missing && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && apt-get install -y -qq $wasi_packages; } >/dev/null 2>&1
fi
wasi_missing && missing "guests with a library of C or C++ are built with Zig alone: apt-get install $wasi_packages"

# Native plugins in C: a compiler, and the library that their control connection is built on.
nghttp2_missing() { ! printf '#include <nghttp2/nghttp2.h>\n' | cc -E - >/dev/null 2>&1; }
if nghttp2_missing && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && apt-get install -y -qq gcc libc6-dev libnghttp2-dev; } >/dev/null 2>&1
fi
nghttp2_missing && missing 'plugins in C cannot be built: apt-get install gcc libc6-dev libnghttp2-dev'

command -v node >/dev/null || missing 'node is missing: apt-get install nodejs (guests are then only run by wazero)'
exit 0
