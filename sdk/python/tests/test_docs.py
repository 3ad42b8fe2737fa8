"""Runs the code blocks of pages, each as a program of its own, from a file, as a reader would."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# The pages, and of those that others test too, the section.
PAGES = [
    (ROOT / "sdk/python/README.md", None),
]
# What is no program: the lines that make tools and the tests of the host run.
COMMANDS = {"pip install ./sdk/python"}


def section(text, heading):
    """The lines of a page below one heading, up to the next."""
    if heading is None:
        return text
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    if not found:
        raise LookupError(f"no section {heading!r}")
    return found[1]


def blocks(text):
    """The code blocks of a page, fenced or indented by four, without what sets them off."""
    found, block = [], []
    for line in re.sub(r"^```(\w*)\n(.*?)^```$", lambda m: re.sub(r"(?m)^(?=.)", "    ", m[2]), text, flags=re.S | re.M).splitlines() + ["."]:
        if line.startswith("    ") or not line.strip() and block:
            block.append(line[4:])
        elif block:
            found.append("\n".join(block).rstrip() + "\n")
            block = []
    return found


def run(code, folder):
    """Runs a program within a folder, as long as a minute."""
    path = pathlib.Path(folder, "program.py")
    path.write_text(code)
    return subprocess.run([sys.executable, path], cwd=folder, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")})


class DocsTest(unittest.TestCase):
    def test_every_block_of_every_page_runs(self):
        for page, heading in PAGES:
            found = blocks(section(page.read_text(), heading))
            self.assertGreater(len(found), 0, page)
            for code in found:
                if code.strip() in COMMANDS:
                    continue
                with self.subTest(page=page.name, code=code), tempfile.TemporaryDirectory() as folder:
                    done = run(code.replace("rlhost.serve(", "print("), folder)
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
