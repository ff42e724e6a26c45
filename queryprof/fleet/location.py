"""Read and write a fleet's files in a directory or an object store (S3, Google, Azure).

A file is never partly visible. Its name is a path relative to the location, with "/" as the
separator. Names outside the location are ignored, because listed names are not trusted.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs, urlsplit

from queryprof.errors import QueryprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
SECRETS = ("access_key", "secret_key", "session_token", "account_key", "sas_token")
"""Parameters that a URL must not contain, because all users of a machine can see command lines."""

UNFINISHED = ".new"


def files_below(
    directory: str, cannot: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the regular files below a directory with their status, in the order of their paths.

    Links are not followed, because they may lead anywhere.

    Args:
        cannot: called with one line for each directory or file that cannot be read.
    """

    def refused(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            cannot(f"{error.filename}: cannot be read: {error.strerror}")

    if _is_link(directory, cannot):
        return
    for above, folders, names in os.walk(directory, onerror=refused):
        folders.sort()
        for name in folders:
            _is_link(os.path.join(above, name), cannot)
        for name in sorted(names):
            path = os.path.join(above, name)
            if _is_link(path, cannot):
                continue
            with suppress(OSError):  # the file was just deleted
                found = os.stat(path)
                if stat.S_ISREG(found.st_mode) and not name.startswith("."):
                    yield path, found


def _is_link(path: str, cannot: Callable[[str], None]) -> bool:
    if os.path.islink(path):
        cannot(f"{path}: is a link; move the files here")
        return True
    return False


class LocationError(QueryprofError):
    """A location cannot be read or written."""


class CannotWriteError(LocationError):
    """A file cannot be written."""


class Entry(NamedTuple):
    """A file of a location.

    Attributes:
        name: the file's path relative to the location.
        modified_ns: time of the last modification, in ns since 1970.
    """

    name: str
    bytes: int
    modified_ns: int


class Location(Protocol):
    """A directory or object store for a fleet's files."""

    def put(self, name: str, content: bytes) -> str:
        """Write a file, and replace any file of the same name. Return its full path or URL for
        messages.

        Raises:
            CannotWriteError: the file cannot be written.
        """

    def entries(self, folder: str) -> Iterator[Entry]:
        """Yield the files below a folder. Raises LocationError."""

    def get(self, name: str) -> bytes:
        """Return a file's content. Raises LocationError."""

    def remove(self, name: str) -> None:
        """Remove a file if it exists. Raises LocationError."""

    def remove_unfinished(self, before_ns: int) -> None:
        """Remove unfinished files of killed writers that are older than `before_ns` (ns since
        1970).
        """


def is_url(text: str) -> bool:
    """Return whether a text is the URL of an object store."""
    return text.partition("://")[0] in SCHEMES and "://" in text


def location_of(text: str, unfinished: str = "") -> Location:
    """Return the location for a path or URL. Raises LocationError.

    Args:
        unfinished: see Directory.
    """
    return ObjectStore(text) if is_url(text) else Directory(text, unfinished)


class Directory:
    """A directory.

    Args:
        unfinished: a part of the names of unfinished files; this process's id if "". With a fixed
            word, a restarted writer replaces the unfinished files of a killed one, and files are
            synced, so that they survive a power failure.
    """

    def __init__(self, path: str, unfinished: str = "") -> None:
        self.path = path
        self._unfinished = unfinished or str(os.getpid())
        self._is_durable = bool(unfinished)

    def put(self, name: str, content: bytes) -> str:
        """See Location. The file is written under a temporary name and renamed. Only its owner can
        read it.
        """
        path = os.path.join(self.path, name)
        folder, last = os.path.split(path)
        beside = os.path.join(folder, f".{last}.{self._unfinished}{UNFINISHED}")
        try:
            self._make_folder(folder)
            try:
                self._write(beside, content)
                os.replace(beside, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside)
                raise
            if self._is_durable:
                _sync_folder(folder)
        except OSError as error:
            reason = error.strerror or error
            raise CannotWriteError(f"{path}: cannot be written: {reason}") from error
        return path

    def _write(self, path: str, content: bytes) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "wb") as file:
            file.write(content)
            if self._is_durable:
                file.flush()
                os.fsync(file.fileno())

    def _make_folder(self, path: str) -> None:
        if not os.path.isdir(path):
            above = os.path.dirname(path) or "."
            self._make_folder(above)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            if self._is_durable:
                _sync_folder(above)

    def entries(self, folder: str) -> Iterator[Entry]:
        """See Location."""
        for path, found in files_below(os.path.join(self.path, folder)):
            relative = os.path.relpath(path, self.path).replace(os.sep, "/")
            yield Entry(relative, found.st_size, found.st_mtime_ns)

    def get(self, name: str) -> bytes:
        """See Location."""
        from queryprof.given_file import content_of

        path = os.path.join(self.path, name)
        try:
            return content_of(path)
        except OSError as error:
            reason = error.strerror or error
            raise LocationError(f"{path}: cannot be read: {reason}") from error

    def remove(self, name: str) -> None:
        """See Location."""
        path = os.path.join(self.path, name)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
        except OSError as error:
            reason = error.strerror or error
            raise LocationError(f"{path}: cannot be removed: {reason}") from error

    def remove_unfinished(self, before_ns: int) -> None:
        """See Location."""
        for above, _, names in os.walk(self.path):
            for name in names:
                if name.startswith(".") and name.endswith(UNFINISHED):
                    with suppress(OSError):
                        path = os.path.join(above, name)
                        if os.lstat(path).st_mtime_ns < before_ns:
                            os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Sync a directory, so that its names survive a power failure, if the file system supports
    this.
    """
    with suppress(OSError):
        handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class ObjectStore:
    """A bucket, or a prefix in a bucket, accessed through pyarrow.

    pyarrow finds credentials as the providers' own tools do: in the environment, in files in the
    home directory, or from the machine's role.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/") if "?" not in url else url
        parts = urlsplit(url)
        if parts.username or parts.password or set(parse_qs(parts.query)) & set(SECRETS):
            raise LocationError(
                f"{parts.scheme}://{parts.hostname or ''}: a URL must not contain keys; set them"
                " in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, ...)"
            )
        if not parts.netloc:
            raise LocationError(f"{url}: no bucket in the URL")
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem

        try:
            self._files, self._path = FileSystem.from_uri(url)
        except (OSError, ValueError, ArrowException) as error:
            raise LocationError(f"{url}: {_one_line(error)}") from error

    def _full_path(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"

    def put(self, name: str, content: bytes) -> str:
        """See Location. An object becomes visible only when it is complete."""
        path = self._full_path(name)
        try:
            stream = self._files.open_output_stream(path)
            stream.write(content)
            stream.close()  # after an error, closing would publish a truncated object
            found = self._files.get_file_info(path)
        except OSError as error:
            raise CannotWriteError(f"{self.url}: cannot be written: {_one_line(error)}") from error
        if found.size != len(content):
            raise CannotWriteError(f"{self.url}: {name} was truncated by the store")
        return f"{self.url}/{name}"

    def entries(self, folder: str) -> Iterator[Entry]:
        """See Location."""
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self._full_path(folder), allow_not_found=True, recursive=True)
        try:
            found = self._files.get_file_info(selector)
        except OSError as error:
            raise LocationError(f"{self.url}: cannot be read: {_one_line(error)}") from error
        above = f"{self._path.rstrip('/')}/"
        for one in sorted(found, key=lambda file: file.path):
            if one.type == FileType.File and one.path.startswith(above):
                yield Entry(one.path.removeprefix(above), one.size, one.mtime_ns or 0)

    def get(self, name: str) -> bytes:
        """See Location."""
        try:
            with self._files.open_input_stream(self._full_path(name)) as stream:
                content: bytes = stream.read()
                return content
        except OSError as error:
            raise LocationError(f"{self.url}: cannot be read: {_one_line(error)}") from error

    def remove(self, name: str) -> None:
        """See Location."""
        try:
            self._files.delete_file(self._full_path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise LocationError(f"{self.url}: cannot be removed: {_one_line(error)}") from error

    def remove_unfinished(self, before_ns: int) -> None:
        """See Location. Do nothing, because unfinished objects are never visible."""


def _one_line(error: Exception) -> str:
    """Return a store's error as one line."""
    return " ".join(str(error).split())[:300]
