"""Builds the extension module from src/ and the C library, and says what is missing where it cannot be built."""

import os
import pathlib
import shlex
import shutil
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent


def library():
    """The folder of the C library: beside this one in a checkout, within it in a source distribution."""
    for folder in (HERE / "native", HERE.parent / "c" / "native"):
        if (folder / "rlhost.h").is_file():
            return folder
    raise SystemExit("rlhost: the C library is missing: build in a checkout (pip install ./sdk/python) or from the sdist")


def relative(path):
    return os.path.relpath(path, HERE)


class Build(build_ext):
    """Asks for the compiler and Python's headers before the build fails for want of them."""

    def run(self):
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
        headers = pathlib.Path(sysconfig.get_path("include"), "Python.h")
        missing = []
        if not shutil.which(compiler):
            missing.append(f"the C compiler {compiler}")
        if not headers.is_file():
            missing.append(f"Python's headers ({headers})")
        if missing:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SystemExit(
                f"\nrlhost: {' and '.join(missing)}: not found. Its shared memory is written in C and built here.\n"
                f"Install both with:  apt-get install gcc libc6-dev python{version}-dev\n"
                "(CC=... names another compiler)\n")
        super().run()


class Source(sdist):
    """Puts the C library into the source distribution."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        into = pathlib.Path(base_dir, "native")
        into.mkdir(exist_ok=True)
        for file in sorted(library().glob("*.[ch]")):
            shutil.copy(file, into)


def extension():
    folder = library()
    return Extension(
        "rlhost._native",
        sources=[relative(f) for f in sorted([*(HERE / "src").glob("*.c"), *folder.glob("*.c")])],
        depends=[relative(f) for f in [*(HERE / "src").glob("*.h"), *folder.glob("*.h")]],
        include_dirs=[relative(folder), "src"],
        define_macros=[("Py_LIMITED_API", "0x030A0000"), ("RLH_NO_CONTROL", None), ("_GNU_SOURCE", None)],
        extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden", "-Wall"],
        libraries=["pthread"],
        py_limited_api=True,
    )


os.chdir(HERE)
setup(ext_modules=[extension()], cmdclass={"build_ext": Build, "sdist": Source})
