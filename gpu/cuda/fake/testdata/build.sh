#!/usr/bin/env bash
# Compiles the kernels of these tests to PTX with the nvcc given, which must be 13.0.88: build.sh NVCC
set -euo pipefail
cd "$(dirname "$0")"
"$1" -std=c++17 -O3 -fmad=false -gencode arch=compute_80,code=compute_80 -ptx kernels.cu -o kernels.ptx
sed -i '/^\/\//d; s/^\.version .*/.version 7.8/' kernels.ptx
