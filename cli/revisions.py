"""Check out revisions of a git repository side by side, without touching the user's work tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from queryprof.errors import QueryprofError


def _run_git(*arguments: str, directory: str = ".") -> str:
    try:
        result = subprocess.run(
            ["git", "-C", directory, *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise QueryprofError("ab: git not found") from error
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["unknown reason"]
        raise QueryprofError(f"git {arguments[0]}: {lines[-1].removeprefix('fatal: ')}")
    return result.stdout.strip()


def find_revision(name: str) -> str:
    """Return the commit of a revision's name. Raises QueryprofError if it does not exist."""
    _run_git("rev-parse", "--show-toplevel")
    try:
        return _run_git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except QueryprofError as error:
        raise QueryprofError(f"{name}: no such revision in this repository") from error


def has_uncommitted_changes() -> bool:
    """Return whether tracked files differ from HEAD."""
    return bool(_run_git("status", "--porcelain", "--untracked-files=no"))


@contextmanager
def temporary_checkouts(commits: list[str]) -> Iterator[list[str]]:
    """Check commits out into temporary worktrees, and remove the worktrees afterwards.

    Yields, for each commit, the directory that corresponds to the working directory in this
    repository.
    """
    prefix = _run_git("rev-parse", "--show-prefix")
    top = _run_git("rev-parse", "--show-toplevel")
    parent = tempfile.mkdtemp(prefix="queryprof-ab-")
    trees: list[str] = []
    try:
        for number, commit in enumerate(commits):
            tree = os.path.join(parent, "base" if number == 0 else "head")
            _run_git("worktree", "add", "--detach", "--quiet", tree, commit, directory=top)
            trees.append(tree)
        places = [os.path.join(tree, prefix) for tree in trees]
        for place, commit in zip(places, commits, strict=True):
            if not os.path.isdir(place):
                raise QueryprofError(f"{commit[:12]}: no directory {prefix}")
        yield places
    finally:
        for tree in trees:
            subprocess.run(
                ["git", "-C", top, "worktree", "remove", "--force", tree],
                capture_output=True,
                check=False,
            )
        shutil.rmtree(parent, ignore_errors=True)
        subprocess.run(["git", "-C", top, "worktree", "prune"], capture_output=True, check=False)
