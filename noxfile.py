"""Sessions of checks, each in an environment of its own: `nox --list`, or through `make`."""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PINNED = [
    line
    for file in ("requirements-dev.txt", "requirements-extra.txt", "requirements-wheels.txt")
    for line in Path(file).read_text().splitlines()
]
TESTS, ONCE = (
    [name for line in part.splitlines() if not line.startswith("#") for name in line.split()]
    for part in Path("tests/packages.txt").read_text().split("\n\n")
)
"""What the tests need, and what those need that run on the first Python alone."""

OTHER_DRIVERS = Path("requirements-drivers.txt").read_text().splitlines()
"""Drivers under the name of one that is among those packages: each in a folder of its own."""
PYTEST = ("pytest", "-q", "-rs", "-n", "4", "--dist", "worksteal")
QUICK = "not compat and not slow"
ONCE_ONLY = r"^pytestmark = .*\bmark\.once\b"
"""In a file whose tests all run on the first Python alone."""

SAME_EXAMPLES = "--hypothesis-seed=0"
"""What passed passes again: random examples are looked for by the session `slow`."""
RANDOM_NAMES = """
core/test_ground_truth.py core/test_lives.py core/test_secrets.py core/test_secrets_everywhere.py
collect/test_damaged_traces.py report/test_hostile_names.py
report/test_hostile_names_in_files.py states/test_sequences.py vfs/test_random_files.py
statistics strangers/test_changed_files.py strangers/test_changed_stores.py tuning
"""
RANDOM = [f"tests/{name}" for name in RANDOM_NAMES.split()]
"""Tests of random programs, texts, files and figures."""

LARGEST_CORE_BYTES = 400_000
CHECKED = {"QUERYPROF_CHECK_TRACES": "1"}
"""Every trace that a test leaves is read again, and its figures must be possible."""

WHEELS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "x86_64-linux-gnu"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "aarch64-linux-gnu"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "x86_64-linux-musl"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "aarch64-linux-musl"),
}
"""By a wheel's platform: what the compiler calls it, and what Python's extension modules do."""

SAY_TAG = "import sys; print('cpython-%d%d' % sys.version_info[:2])"
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = True


def pinned(*names: str) -> list[str]:
    """The pinned requirements of these names."""
    return [line for line in PINNED if line.partition("==")[0] in names]


def interpreters() -> list[str]:
    """The versions that are here, on the PATH or among pyenv's: nox finds them by those
    names, too.
    """
    found = []
    names = Path(".nox", "pythons").resolve()
    names.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = os.pathsep.join((str(names), os.environ["PATH"]))
    for version in VERSIONS:
        name = names / f"python{version}"
        name.unlink(missing_ok=True)
        candidates = [shutil.which(f"python{version}") or ""]
        root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        candidates += sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}"))
        working = [c for c in candidates if c and _is_python(c, version)]
        if working:
            name.symlink_to(working[-1])
            found.append(version)
    if not found:
        raise SystemExit(f"none of Python {', '.join(VERSIONS)} is here")
    return found


def _is_python(path: str, version: str) -> bool:
    code = (
        "import sys, sqlite3; sys.exit(sys.version_info[:2] !="
        f" {tuple(map(int, version.split('.')))})"
    )
    return subprocess.run([path, "-c", code], capture_output=True, check=False).returncode == 0


PYTHONS = interpreters()


@contextmanager
def building() -> Iterator[None]:
    """Let one session build at a time, in a build/ without modules that were deleted since."""
    with Path(".nox", "building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree("build", ignore_errors=True)
        yield
        shutil.rmtree("build", ignore_errors=True)


def install(session: nox.Session, *names: str, flags: str = "") -> None:
    """Installs the package as a wheel, and tools by name."""
    session.install("click>=8.1", "plotille>=5.0", "rich>=13.7", *pinned(*names))
    with building():
        environment = {"QUERYPROF_CFLAGS": flags}
        session.install("--no-deps", "--force-reinstall", ".", env=environment)


def install_tests(session: nox.Session) -> dict[str, str]:
    """Installs what the tests need; their environment."""
    is_first = session.python == PYTHONS[0]
    install(session, *TESTS, *(ONCE if is_first else ()), flags="-Werror")
    if is_first and shutil.which("mariadb_config"):  # it is built against that
        session.install(*pinned("mysqlclient"))
    drivers = Path(session.virtualenv.location, "drivers").resolve()
    for requirement in OTHER_DRIVERS if is_first else ():
        session.install("--no-deps", "--target", str(drivers / requirement), requirement)
    return {
        "QUERYPROF_DRIVERS": str(drivers),
        "QUERYPROF_EXAMPLES": "10",
        "PYTHONDONTWRITEBYTECODE": "",  # the tests start thousands of processes
    }


def by_version() -> list[str]:
    """The files with tests that depend on the version of Python: each worker reads all it gets."""
    files = sorted(Path("tests").rglob("test_*.py"))
    return [
        str(one)
        for one in files
        if "shop" not in one.parts and not re.search(ONCE_ONLY, one.read_text(), re.MULTILINE)
    ]  # what is in shop is run by pytest inside of a test


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, against the installed wheel; the core is compiled with warnings as errors."""
    environment = install_tests(session)
    is_first = session.python == PYTHONS[0]
    marks = QUICK if is_first else f"{QUICK} and not once"
    has_paths = any(os.path.exists(one.partition("::")[0]) for one in session.posargs)
    files = [] if is_first or has_paths else by_version()
    session.run(*PYTEST, SAME_EXAMPLES, "-m", marks, *session.posargs, *files, env=environment)


@nox.session(python=PYTHONS[0])
def anywhere(session: nox.Session) -> None:
    """The tests in each of the surroundings: `nox -s anywhere -- TIMES [NAME...]`."""
    environment = install_tests(session) | CHECKED
    slow_machine = str(Path(session.virtualenv.location, "slow_machine.so").resolve())
    flags = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    source = ("tests/slow_machine.c", "-o", slow_machine, "-ldl")
    session.run("gcc", *flags, *source, external=True)
    arguments = session.posargs or ("1",)
    pytest = (*PYTEST, SAME_EXAMPLES, "-m", QUICK, "-p", "no:cacheprovider")
    session.run(
        "python", "tests/anywhere.py", slow_machine, *arguments, "--", *pytest, env=environment
    )


@nox.session(python=PYTHONS[0])
def slow(session: nox.Session) -> None:
    """The tests that take long, and ten times the random programs."""
    install(session, *TESTS, *ONCE, flags="-Werror")
    session.run(*PYTEST, "-m", "slow", *session.posargs, env=CHECKED)
    session.run(*PYTEST, *RANDOM, env={"QUERYPROF_EXAMPLES": "1000"} | CHECKED)
    session.install(*pinned("pyspark"))  # last: jupysql imports it, and it ends pytest's workers
    session.run("pytest", "-q", "tests/fleet/test_spark.py")


@nox.session(python=PYTHONS[0])
def compat(session: nox.Session) -> None:
    """Other programs' own test suites, bare and under queryprof."""
    install(session, *TESTS, "nuitka")
    session.run("pytest", "-q", "-m", "compat", *session.posargs)


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    """Mypy --strict, on the installed package: it cannot follow package_dir in the checkout."""
    install(
        session, "mypy", "pytest", "apsw", "prometheus-client", "sqlglot", flags="-O0 -fno-lto"
    )  # stubtest looks at names alone
    session.chdir("tests")
    session.run("mypy", "--strict", "-p", "queryprof")
    session.run("stubtest", "--allowlist", "stub-allowlist.txt", "queryprof.core._core")


@nox.session(python=PYTHONS[0])
def targets(session: nox.Session) -> None:
    """Compile the core for an old glibc and for musl, on one processor each; `wheels` has all."""
    session.install(*pinned("ziglang"))
    say = "import sysconfig; print(sysconfig.get_path('include'))"
    python = str(session.run("python", "-c", say, silent=True)).strip()
    core = Path("queryprof/core").resolve()
    files = sorted(str(path) for path in core.glob("*/*.c"))
    session.chdir(session.create_tmp())
    flags = ("-c", "-O0", "-std=c11", f"-I{core}", f"-I{python}", *files)
    # Python's headers define what those of musl and of an old glibc do: such warnings are not ours.
    zig = ("python", "-m", "ziglang", "cc", "-w")
    for platform in ("manylinux_2_17_x86_64", "musllinux_1_2_aarch64"):
        session.run(*zig, "-target", WHEELS[platform][0], *flags)


@nox.session(python=PYTHONS[0])
def sanitize(session: nox.Session) -> None:
    """The core's tests under ASan and UBSan, with allocations that fail."""
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-lto -g -O1"
    install(session, *TESTS, flags=f"{flags} -DQP_FAULT_INJECTION")
    preload = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # Instructions of the sanitizers are not the core's, and nothing of musl's loads them. DuckDB's
    # C++ exceptions abort where libasan is loaded before libstdc++.
    left_out = (
        "--ignore=tests/region/test_kills_at_any_moment.py",
        "--ignore=tests/core/test_musl.py",
        "--deselect=tests/hooks/test_drivers.py::test_duckdb",
    )
    folders = [f"tests/{room}" for room in ("core", "hooks", "region", "startup", "replay")]
    command = (*PYTEST, "-p", "no:cacheprovider", "-m", "not compat", *left_out, *folders)
    session.run(
        *command,
        *session.posargs,
        env={
            "LD_PRELOAD": preload,
            # CPython keeps what it interned to the end: its leaks would hide ours.
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "PYTHONMALLOC": "malloc",
            "QUERYPROF_LONG_PROGRAMS": "1",
        },
    )


@nox.session(python=PYTHONS[0])
def coverage(session: nox.Session) -> None:
    """Which lines of Python and of C the tests run: in a copy, built to count them."""
    install(session, *TESTS, *ONCE, "coverage", "gcovr", "setuptools")
    copy = Path(session.create_tmp(), "copy").resolve()
    shutil.rmtree(copy, ignore_errors=True)
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    for name in files.splitlines():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, copy / name)
    session.chdir(copy)
    session.install("--no-deps", "--no-build-isolation", "-e", ".")
    build = "python setup.py --quiet build_ext --inplace --force --build-temp objects"
    session.run(*build.split(), env={"QUERYPROF_CFLAGS": "--coverage -O0 -fno-lto -g"})
    tests = ("coverage", "run", "-m", *PYTEST, "-p", "no:cacheprovider", "-m", QUICK)
    # Limits of time are not meant for such a build.
    session.run(*tests, *session.posargs, success_codes=[0, 1])
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report", "--skip-covered", "--format=total")
    session.run("gcovr", "--root", ".", "--object-directory", "objects", "--print-summary")


@nox.session(python=PYTHONS[0])
def site(session: nox.Session) -> None:
    """The documentation as a site, with the API's reference, in site/."""
    install(session, "mkdocs-material", "mkdocstrings-python", flags="-O0 -fno-lto")
    say = "import sysconfig; print(sysconfig.get_path('purelib'))"
    installed = str(session.run("python", "-c", say, silent=True)).strip()
    environment = {"NO_MKDOCS_2_WARNING": "1", "INSTALLED": installed}
    session.run("mkdocs", "build", "--strict", "--quiet", env=environment)


@nox.session(python=PYTHONS[0])
def package(session: nox.Session) -> None:
    """From the checkout to a source distribution, to a wheel, to a recording where there is no
    compiler; and nothing is left when it is uninstalled.
    """
    session.install(*pinned("build", "setuptools", "twine"))
    directory = Path(session.create_tmp(), "dist")
    shutil.rmtree(directory, ignore_errors=True)
    build = ("python", "-m", "build", "--no-isolation", "--outdir", str(directory))
    with building():
        session.run(*build, silent=True, env={"QUERYPROF_CORE": "required"})
    made = sorted(str(path) for path in directory.iterdir())
    session.run("twine", "check", "--strict", *made)
    wheel = next(path for path in made if path.endswith(".whl"))
    with zipfile.ZipFile(wheel) as archive:
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    core = next(bytes_ for name, bytes_ in sizes.items() if name.endswith(".so"))
    if core > LARGEST_CORE_BYTES:
        session.error(f"the core has {core:,} bytes: is it stripped?")

    place = Path(session.create_tmp(), "installed")
    shutil.rmtree(place, ignore_errors=True)
    session.run("python", "-m", "venv", str(place))
    python = str(place / "bin" / "python")
    before = files_of(place)
    path = {"PATH": str(place / "bin"), "QUERYPROF": "", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*command: str) -> object:
        return session.run(*command, env=path, external=True, silent=True)

    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    session.log(run(str(place / "bin" / "queryprof"), "doctor"))
    query = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 42').fetchone()"
    trace = str(directory / "package.qprof")
    run(str(place / "bin" / "queryprof"), "run", "-o", trace, "-c", query)
    report = run(str(place / "bin" / "queryprof"), "report", trace, "--format", "json")
    if "SELECT ?" not in str(report):
        session.error(f"it was not recorded: {report}")
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "queryprof")
    left = sorted(name for name in files_of(place) - before if "queryprof" in name)
    if left:
        session.error(f"left behind: {', '.join(left)}")

    without = str(Path(session.create_tmp(), "without"))
    with building():
        session.run(".ci/wheel-without-core", without, python, trace, external=True)


def files_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@nox.session(python=PYTHONS)
def bench(session: nox.Session) -> None:
    """What recording costs the cheapest call."""
    install(session)
    session.run("python", *session.posargs)


@nox.session(python=PYTHONS[0])
def release(session: nox.Session) -> None:
    """Checks that the changes name this version, and makes sdist and wheels in dist/, checked."""
    version = Path("queryprof/version.py").read_text().split('"')[-2]
    if f"## {version}\n" not in Path("CHANGELOG.md").read_text():
        session.error(f"CHANGELOG.md has no section '## {version}': see CONTRIBUTING.md")
    if subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True).stdout:
        session.error("there are changes that are not committed")
    shutil.rmtree("dist", ignore_errors=True)
    session.install(*pinned("build", "setuptools", "twine"))
    session.run("python", "-m", "build", "--sdist", "--no-isolation", silent=True)
    session.notify("wheels")
    session.notify("package")
    session.notify("check_release")


@nox.session(python=PYTHONS[0])
def check_release(session: nox.Session) -> None:
    """What is in dist/, as an index takes it, and installed without a compiler."""
    session.install(*pinned("twine"))
    made = sorted(glob.glob("dist/*"))
    session.run("twine", "check", "--strict", *made)
    tag = "".join(session.run("python", "-c", SAY_TAG, silent=True).split()).replace(
        "cpython-", "cp"
    )  # type: ignore[union-attr]
    (wheel,) = glob.glob(f"dist/*-{tag}-*manylinux_2_17_x86_64.whl")
    session.install(wheel)
    session.run("queryprof", "doctor")
    session.log(f"{len(made)} files in dist/ can be uploaded")


@nox.session(python=PYTHONS)
def wheels(session: nox.Session) -> None:
    """Wheels for Linux, as old as glibc 2.17 and as small as musl, compiled by zig's clang."""
    session.install(*pinned("auditwheel", "build", "setuptools", "ziglang"))
    tag = "".join(session.run("python", "-c", SAY_TAG, silent=True).split())  # type: ignore[union-attr]
    for platform, (target, triplet) in WHEELS.items():
        compiler = f"{session.bin}/python -m ziglang cc -target {target}"
        link = f"{compiler} -shared"
        if "musl" in target:  # by the name that Alpine and auditwheel know its library by
            library = Path(session.create_tmp(), f"libc.musl-{target.partition('-')[0]}.so.1")
            name = f"-Wl,-soname,{library.name}"
            empty = [*compiler.split(), "-shared", "-nostdlib", name, "-x", "c", os.devnull]
            session.run(*empty, "-o", str(library))
            link += f" -nostdlib -Wl,--no-as-needed {library}"
        shutil.rmtree("build", ignore_errors=True)
        environment = {
            "QUERYPROF_CORE": "required",
            "CC": compiler,
            "LDSHARED": link,
            "SETUPTOOLS_EXT_SUFFIX": f".{tag}-{triplet}.so",
            "_PYTHON_HOST_PLATFORM": platform,
        }
        build = ("python", "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist")
        session.run(*build, silent=True, env=environment)
        shutil.rmtree("build", ignore_errors=True)
        (wheel,) = glob.glob(f"dist/queryprof-*-{tag.replace('cpython-', 'cp')}-*{platform}.whl")
        said = session.run("auditwheel", "show", wheel, silent=True)
        if f'platform tag: "{platform}"' not in " ".join(str(said).split()):
            session.error(f"{wheel} is not what it is called: {said}")
    session.log(f"made {len(WHEELS)} wheels of Python {session.python} in dist/")
