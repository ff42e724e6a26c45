"""Builds the C extension and ships the .pth file; everything else stands in setup.cfg."""

import os
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

CORE = Path("queryprof", "core")
PTH = "queryprof.pth"
EXTRA_FLAGS = os.environ.get("QUERYPROF_CFLAGS", "").split()
"""What the tests add, to build with sanitizers or with fault injection."""


class BuildWithPth(build_py):
    """Puts queryprof.pth at the top of site-packages, where Python looks for such files."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_file(str(Path("queryprof", "startup", PTH)), str(Path(self.build_lib, PTH)))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib, PTH))]


class BuildInParallel(build_ext):
    """Compiles several files at once: setuptools does so with extensions alone."""

    def build_extensions(self) -> None:
        compile_all = self.compiler.compile

        def compile_each(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda source: compile_all([source], **options), sources)
                return [name for names in made for name in names]

        self.compiler.compile = compile_each
        super().build_extensions()


# The probe is many small functions in files of their own, and should be one.
COMPILER = os.environ.get("CC") or sysconfig.get_config_var("CC") or ""
IS_GCC = sys.platform == "linux" and not any(other in COMPILER for other in ("clang", "zig"))
IS_MUSL = "musl" in COMPILER or "musl" in (sysconfig.get_config_var("SOABI") or "")
LINK_TIME = "-flto=auto" if IS_GCC else "-flto"  # with all processors


WITH_CORE = os.environ.get("QUERYPROF_CORE", "")
"""required: a core that cannot be built is an error; none: it is left out. Otherwise it is built
where it can be, and elsewhere queryprof reads traces and records nothing."""

if WITH_CORE not in ("", "required", "none"):
    raise SystemExit(f"QUERYPROF_CORE={WITH_CORE}: is required, none, or not set")

# Its core is written for Linux, and for a CPython whose calls its lock serializes.
IS_RECORDED = (
    sys.platform == "linux"
    and sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)


def can_compile() -> bool:
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return bool(COMPILER) and shutil.which(COMPILER.split()[0]) is not None and header.is_file()


def linker_flags() -> list[str]:
    # Python's own flags ask for what debuggers want: four fifths of the file.
    strips = sys.platform == "linux" and "-g" not in EXTRA_FLAGS
    return ["-O2", LINK_TIME, *(["-Wl,--strip-all"] if strips else []), *EXTRA_FLAGS]


def compiler_flags() -> list[str]:
    flags = ["-std=c11", "-O2", LINK_TIME, "-Wall", "-Wextra", "-fvisibility=hidden"]
    return flags + EXTRA_FLAGS


CORE_EXTENSION = Extension(
    "queryprof.core._core",
    sources=sorted(str(path) for path in CORE.rglob("*.c")),
    depends=sorted(str(path) for path in CORE.rglob("*.h")),
    include_dirs=[str(CORE)],
    extra_compile_args=compiler_flags(),
    extra_link_args=linker_flags(),
    libraries=["dl", "pthread"] if sys.platform == "linux" and not IS_MUSL else [],
)

if WITH_CORE == "required" and not IS_RECORDED:
    raise SystemExit("QUERYPROF_CORE=required: queryprof cannot record on this Python or system")

is_built = WITH_CORE == "required" or (WITH_CORE != "none" and IS_RECORDED and can_compile())

setup(
    cmdclass={"build_py": BuildWithPth, "build_ext": BuildInParallel},
    ext_modules=[CORE_EXTENSION] if is_built else [],  # without: a wheel py3-none-any
)
