"""Runs the peers' scripts in their environments."""

import json
import pathlib

import ours

HERE = pathlib.Path(__file__).resolve().parent


def run(environment, script, *args, one_core=False, threads=None):
    """Runs one script and returns its measurements."""
    python = ours.CACHE / environment / "bin" / "python"
    env = {"TORCHINDUCTOR_CACHE_DIR": str(ours.CACHE / "inductor"), "PYTHONDONTWRITEBYTECODE": "1"}
    if threads:
        env["OMP_NUM_THREADS"] = str(threads)
    text = ours.output([python, HERE / script, *args], one_core, cwd=HERE, **env)
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"peer"')]


def version(environment, package):
    """The pinned version of a package."""
    for line in (HERE / f"{environment}.txt").read_text().splitlines():
        name, _, pinned = line.partition("==")
        if name.lower().replace("_", "-") == package:
            return pinned
    raise ours.Failed(f"{environment}.txt does not pin {package}")
