"""Builds the C extension and ships the .pth file; everything else stands in setup.cfg."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
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
            self.copy_file(str(Path("hooks", PTH)), str(Path(self.build_lib, PTH)))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib, PTH))]


def compiler_flags() -> list[str]:
    if sys.platform == "win32":
        return ["/std:c11", "/O2"]
    # -flto: the probe is many small functions in files of their own, and should be one.
    flags = ["-std=c11", "-O2", "-flto", "-Wall", "-Wextra", "-fvisibility=hidden"]
    return flags + EXTRA_FLAGS


setup(
    cmdclass={"build_py": BuildWithPth},
    ext_modules=[
        Extension(
            "queryprof.core._core",
            sources=sorted(str(path) for path in CORE.glob("*.c")),
            depends=sorted(str(path) for path in CORE.glob("*.h")),
            extra_compile_args=compiler_flags(),
            extra_link_args=[] if sys.platform == "win32" else ["-O2", "-flto", *EXTRA_FLAGS],
            libraries=[] if sys.platform in ("win32", "darwin") else ["dl", "pthread"],
        )
    ],
)
