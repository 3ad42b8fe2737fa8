#!/usr/bin/env bash
# Runs the package's own tests under every Python from 3.10 to 3.14 that is found: on the path, of pyenv and of uv. Each has an environment of its
# own in .cache, with the newest versions of what the package needs that this Python takes. RLHOST_PYTHONS names other interpreters.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
mkdir -p .cache/pythons
go build -o .cache/pythons/bin/ ./cmd/rlhost || exit 1

found=${RLHOST_PYTHONS:-}
if [ -z "$found" ]; then
  for version in 3.10 3.11 3.12 3.13 3.14; do
    for python in "$HOME"/.pyenv/versions/$version.*/bin/python "$HOME"/.local/share/uv/python/cpython-$version.*/bin/python $(command -v python$version); do
      if [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = $version ]; then
        found="$found $python"
        break
      fi
    done
  done
fi

failed=0
for python in $found; do
  version=$("$python" -c 'import platform; print(platform.python_version())')
  own=$root/.cache/pythons/$version
  [ -x "$own/bin/python" ] || "$python" -m venv "$own" || exit 1
  if ! "$own/bin/python" -m pip install --quiet --disable-pip-version-check "setuptools>=77" numpy gymnasium pettingzoo safetensors grpcio tqdm optuna imageio-ffmpeg ale-py pygame-ce >"$own/pip.txt" 2>&1 ||
    ! "$own/bin/python" sdk/python/installed.py --install >>"$own/pip.txt" 2>&1; then
    echo "Python $version: what the tests need cannot be installed: $(tail -1 "$own/pip.txt")"
    failed=1
    continue
  fi
  start=$SECONDS
  # A shell that runs in the background has its programs ignore Ctrl-C, which some tests press.
  (cd sdk/python/tests && PATH=$root/.cache/pythons/bin:$PATH GRPC_VERBOSITY=ERROR PYTHONDONTWRITEBYTECODE=1 env --default-signal=INT "$own/bin/python" -m unittest discover -p 'test_*.py') >"$own/tests.txt" 2>&1
  status=$?
  [ $status = 0 ] || failed=1
  echo "Python $version: $(grep -E '^Ran ' "$own/tests.txt" | tail -1), $(grep -E "^(OK|FAILED)" "$own/tests.txt" | tail -1), $((SECONDS - start)) s, NumPy $("$own/bin/python" -c 'import numpy; print(numpy.__version__)')"
  [ $status = 0 ] || grep -E '^(FAIL|ERROR): ' "$own/tests.txt"
done
exit $failed
