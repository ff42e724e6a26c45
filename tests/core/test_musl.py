"""The core with the C library musl, which Alpine has: it compiles, links, and is loaded by musl's
loader.

There is no Python for musl here, so a library of empty functions stands for Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is not here"),
]

CORE = Path(__file__).parent.parent.parent / "queryprof" / "core"
FLAGS = ("-std=c11", "-O0", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
LOADER = """
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    void *core = dlopen(arguments[count - 1], RTLD_NOW);
    if (!core || !dlsym(core, "PyInit__core")) {
        puts(dlerror());
        return 1;
    }
    return 0;
}
"""


def compile_with_musl(*arguments: object) -> None:
    command = ["musl-gcc", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def linked(name: str, sources: list[Path], *flags: str) -> Path:
    """Build a library of these sources, and next to it the loader and a library with the Python
    functions that it needs. Return its path.
    """
    # A separate folder, because Python's headers are next to the C library's headers of the system.
    include = ("-I", CORE, "-isystem", sysconfig.get_path("include"))
    objects = {
        source: Path(f"{source.parent.name}-{source.stem}.o").resolve() for source in sources
    }
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(
            lambda pair: compile_with_musl(*FLAGS, *flags, *include, "-c", pair[0], "-o", pair[1]),
            objects.items(),
        ):
            pass
    library = Path(name).resolve()
    compile_with_musl("-shared", *objects.values(), "-o", library)
    symbols = subprocess.run(
        ["nm", "-uD", library], capture_output=True, text=True, check=True
    ).stdout
    wanted = {line.split()[-1] for line in symbols.splitlines()}
    of_python = sorted(one for one in wanted if one.startswith(("Py", "_Py")))
    Path("python.c").write_text("".join(f"char {one}[64];\n" for one in of_python))
    compile_with_musl("-shared", "-fPIC", "python.c", "-o", "libpython.so")
    Path("loader.c").write_text(LOADER)
    compile_with_musl(
        "loader.c", "-o", "loader", "-L.", "-Wl,--no-as-needed", "-lpython", "-Wl,-rpath,."
    )
    return library


def loaded(library: Path) -> str:
    """Return why it is not loaded, or '' if it is."""
    return subprocess.run(["./loader", library], capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_the_core_is_loaded_by_musl() -> None:
    assert loaded(linked("core.so", sorted(CORE.rglob("*.c")))) == ""


def test_what_glibc_alone_allows_is_refused_by_musl() -> None:
    """This shows that the test above can fail. The variable is in the C library's own thread
    memory.
    """
    source = Path("local.c")
    source.write_text(
        f'#include "{CORE}/runtime/thread_local.h"\n'
        "QP_THREAD_LOCAL qp_local qp_here;\n"
        '__attribute__((visibility("default"))) void *PyInit__core(void);\n'
        "void *PyInit__core(void) { return &qp_here; }\n"
    )
    assert "initial-exec" in loaded(linked("glibc.so", [source], "-D__GLIBC__=2"))
    assert loaded(linked("musl.so", [source])) == ""
