"""Tests of the package as a whole: what it is made of, and what importing it costs."""

import importlib
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import rlhost


def isolated(code, *path):
    """Runs code in an interpreter of its own, with folders to find packages in first."""
    first = "import sys; sys.path[:0] = %r; " % (list(path),)
    return subprocess.run([sys.executable, "-c", first + code], capture_output=True, text=True)


class PackageTest(unittest.TestCase):
    def test_every_name_is_where_it_is_looked_for(self):
        self.assertEqual(sorted(rlhost._HOME), sorted(rlhost.__all__))
        for name in rlhost.__all__:
            self.assertIs(getattr(rlhost, name), getattr(importlib.import_module("rlhost." + rlhost._HOME[name]), name))
            self.assertIn(name, dir(rlhost))
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            rlhost.nothing

    def test_the_wheel_has_the_version_of_the_package(self):
        self.assertEqual(importlib.metadata.version("rlhost"), rlhost.__version__)

    def test_objects_need_no_extension(self):
        done = isolated("import rlhost.objects; sys.exit(any(m in sys.modules for m in ('rlhost._native', 'grpc')))")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_objects_has_all_its_names(self):
        from rlhost import objects
        for name in objects.__all__:
            self.assertTrue(hasattr(objects, name), name)

    def test_what_needs_the_extension_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(rlhost.__file__).parent
            shutil.copytree(package, pathlib.Path(folder, "rlhost"), ignore=shutil.ignore_patterns("*.so", "__pycache__"))
            self.assertEqual(isolated("from rlhost import objects", folder).stderr, "")
            for use in "import rlhost; rlhost.Message", "from rlhost import Queue", "from rlhost.serving import serve":
                done = isolated(use, folder)
                self.assertEqual(done.returncode, 1, use)
                self.assertRegex(done.stderr.splitlines()[-1], "^ImportError: rlhost: its extension module is missing.*pip install", use)

    def test_the_readme_shows_programs_that_run(self):
        readme = pathlib.Path(__file__).parents[1].joinpath("README.md").read_text()
        for program in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
            if "objects.serve" in program and not shutil.which("rlhost"):
                continue  # it starts one
            with self.subTest(program.splitlines()[-1]), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "program.py")
                path.write_text(program)
                done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
                if "rlhost.serve(" in program:
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("This is a plugin of rlhost", done.stderr)
                else:
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
