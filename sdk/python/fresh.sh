#!/usr/bin/env bash
# Installs the wheel of this machine into a fresh environment, where neither Go nor a compiler is found, and follows the page for people
# who live in Python: train, load, play. Says how long that took.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$(ls "$PWD"/dist/rlhost-*_"$(uname -m)".whl)
page=$PWD/docs/start/python.md
python=$(command -v python3)
work=$(mktemp -d)
remove=$(command -v rm)
trap '"$remove" -rf "$work"' EXIT
cd "$work"
start=$SECONDS
"$python" -m venv .venv
mkdir bin
for tool in sh cat ls; do ln -s "$(command -v $tool)" bin/; done
export PATH=$work/.venv/bin:$work/bin
python -m pip install --quiet --disable-pip-version-check "$wheel" "gymnasium[classic-control]"
rlhost version
python -m rlhost version >again.txt
python - "$page" <<'PYTHON'
import pathlib, re, subprocess, sys
for name, text in re.findall(r"```python (\S+)\n(.*?)```", pathlib.Path(sys.argv[1]).read_text(), re.DOTALL):
    pathlib.Path(name).write_text(text)
    print(subprocess.run([sys.executable, name], check=True, capture_output=True, text=True).stdout, end="")
PYTHON
took=$((SECONDS - start))
echo "a fresh environment, from the wheel to a policy that plays: $took s"
python - <<'PYTHON'
import subprocess, sys
def best(code):
    return min(float(subprocess.run([sys.executable, "-c", "import time; t = time.perf_counter(); " + code + "; print(time.perf_counter() - t)"],
                                    check=True, capture_output=True, text=True).stdout) for _ in range(5))
print(f"import rlhost: {1000 * (best('import numpy, rlhost') - best('import numpy')):.0f} ms beyond NumPy")
PYTHON
