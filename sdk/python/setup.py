"""Builds the extension module from src/ and the C library, and says what is missing where it cannot be built."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent


def library():
    """The folder of the C library: beside this one in a checkout, within it in a source distribution."""
    for folder in (HERE / "native", HERE.parent / "c" / "native"):
        if (folder / "rlhost.h").is_file():
            return folder
    raise SystemExit("rlhost: the C library is missing: build in a checkout (pip install ./sdk/python) or from the sdist")


def within():
    """The library's folder within this one: compilers put what they make beside the path that they are given."""
    folder = library()
    if folder.parent == HERE:
        return folder.relative_to(HERE)
    into = HERE / "build" / "native"
    into.mkdir(parents=True, exist_ok=True)
    sources = {f.name: f for f in folder.glob("*.[ch]")}
    for stale in set(os.listdir(into)) - set(sources):
        (into / stale).unlink()
    for name, source in sources.items():
        if not (into / name).is_file() or (into / name).read_bytes() != source.read_bytes():
            shutil.copy(source, into / name)
    return into.relative_to(HERE)


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


def reader():
    """The reader of exported policies, which lies beside what writes them, or in this folder in a source distribution."""
    for file in (HERE / "rlhost_policy.py", HERE.parents[1] / "pipeline" / "export" / "rlhost_policy.py"):
        if file.is_file():
            return file
    raise SystemExit("rlhost: rlhost_policy.py is missing: build in a checkout (pip install ./sdk/python) or from the sdist")


class Package(build_py):
    """Takes out of the build folder what is no longer in this one, since all that lies there is installed, and adds the reader of
    policies and the program."""

    def run(self):
        built = pathlib.Path(self.build_lib)
        for module in built.glob("rlhost/**/*.py*"):
            if not (HERE / module.relative_to(built)).is_file():
                module.unlink()
        super().run()
        shutil.copy(reader(), built / "rlhost")
        program(built / "rlhost" / "bin" / "rlhost")


def program(into):
    """Puts the program rlhost into the package: the one that RLHOST_PROGRAM names, none where that is empty, else one built from the
    checkout where Go is."""
    named, checkout = os.environ.get("RLHOST_PROGRAM"), HERE.parents[1]
    into.unlink(missing_ok=True)
    if named == "" or named is None and not (shutil.which("go") and (checkout / "cmd" / "rlhost").is_dir()):
        found = shutil.which("rlhost")
        print(f"rlhost: the package has no program in it: {found or 'one on PATH'} will be used", file=sys.stderr)
        return
    into.parent.mkdir(parents=True, exist_ok=True)
    if named:
        shutil.copy(named, into)
    else:
        print("rlhost: building the program with Go", file=sys.stderr)
        subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(into), "./cmd/rlhost"], cwd=checkout, check=True,
                       env={**os.environ, "CGO_ENABLED": "0"})
    into.chmod(0o755)


class Source(sdist):
    """Puts the C library into the source distribution."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, [f for f in files if not f.startswith("build")])
        into = pathlib.Path(base_dir, "native")
        into.mkdir(exist_ok=True)
        for file in sorted(library().glob("*.[ch]")):
            shutil.copy(file, into)
        shutil.copy(reader(), base_dir)


def extension():
    folder = within()
    return Extension(
        "rlhost._native",
        sources=[str(f) for part in (pathlib.Path("src"), folder) for f in sorted(part.glob("*.c"))],
        depends=[str(f) for part in (pathlib.Path("src"), folder) for f in sorted(part.glob("*.h"))],
        include_dirs=[str(folder), "src"],
        define_macros=[("Py_LIMITED_API", "0x030A0000"), ("RLH_NO_CONTROL", None), ("_GNU_SOURCE", None)],
        extra_compile_args=["-std=gnu11", "-O2", "-g0", "-fvisibility=hidden", "-Wall"],
        libraries=["pthread"],
        py_limited_api=True,
    )


os.chdir(HERE)
setup(ext_modules=[extension()], cmdclass={"build_py": Package, "build_ext": Build, "sdist": Source})
