"""The start-up archive: Spark's loaded classes, stored between runs so that a JVM starts faster.

Java writes such an archive when a JVM exits and maps it into the next one. It trusts what it maps:
a truncated file kills the JVM. So an archive gets its name, with its size in it, only after the
process that wrote it has ended, and an archive that may be incomplete is not used
(tests/contract/spark/test_archive.py).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from omnigraph.engine.spark.java import java_version, release_text

SPARK_ARCHIVES_MAX: Final = 3
"""Start-up archives kept in the user's cache; each has about 150 MB."""


_SUFFIX: Final = ".jsa"


@dataclass(frozen=True, slots=True)
class Replay:
    """Start with the archive of an earlier run.

    Attributes:
        path: The archive; delete it if the JVM crashes with it.
    """

    path: Path

    @property
    def options(self) -> tuple[str, ...]:
        """Options for the JVM."""
        # Checked by checksum: one changed byte in the classes would otherwise be executed.
        return (f"-XX:SharedArchiveFile={self.path}", "-XX:+VerifySharedSpaces")


@dataclass(frozen=True, slots=True)
class Record:
    """Start without an archive and write one.

    Attributes:
        lock: An open file that the JVM must inherit: while it lives, no other JVM records, and
            none uses the unfinished archive.
    """

    path: Path
    lock: int

    @property
    def options(self) -> tuple[str, ...]:
        """Options for the JVM."""
        return (f"-XX:ArchiveClassesAtExit={self.path}",)


@dataclass(frozen=True, slots=True)
class NoArchive:
    """Start without: another process is recording, or there is no place for an archive."""

    @property
    def options(self) -> tuple[str, ...]:
        """Options for the JVM."""
        return ()


Start = Replay | Record | NoArchive


def choose_start(directory: Path, java: Path) -> Start:
    """How the next JVM starts. Never raises: any obstacle costs only time."""
    try:
        return _choose(directory, archive_stem(java))
    except OSError:
        return NoArchive()


def archive_stem(java: Path) -> str:
    """The beginning of an archive's name: the Java and the Spark that it belongs to.

    Java itself refuses an archive of another build, or of jars that moved or changed, so all of
    these are in the name.
    """
    jars = Path(pyspark.__file__).parent / "jars"
    changed_ns = jars.stat().st_mtime_ns if jars.is_dir() else 0
    identity = "\n".join([str(java.resolve()), release_text(java), str(jars), str(changed_ns)])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return f"spark-{pyspark.__version__}-java-{java_version(java) or 'unknown'}-{digest}"


def _choose(directory: Path, stem: str) -> Start:
    directory.mkdir(parents=True, exist_ok=True)
    if path := _find_complete(directory, stem):
        return Replay(path)
    lock = os.open(directory / f"{stem}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The process that held the lock until now may have just finished.
        path = _find_complete(directory, stem) or _adopt_unfinished(directory, stem)
        if path is None:
            return Record(_unfinished_path(directory, stem), os.dup(lock))
    except BlockingIOError:
        return NoArchive()
    finally:
        os.close(lock)
    return Replay(path)


def _find_complete(directory: Path, stem: str) -> Path | None:
    for path in sorted(directory.glob(f"{stem}-*{_SUFFIX}")):
        if path.name == _name(stem, path.stat().st_size) and os.access(path, os.R_OK):
            # The time of last use decides which archives are deleted when there are too many.
            with suppress(OSError):
                os.utime(path)
            return path
        path.unlink(missing_ok=True)
    return None


def _adopt_unfinished(directory: Path, stem: str) -> Path | None:
    """Name the archive that a JVM has finished; the lock must be held."""
    unfinished = _unfinished_path(directory, stem)
    if not _has_header(unfinished):
        unfinished.unlink(missing_ok=True)
        return None
    path = directory / _name(stem, unfinished.stat().st_size)
    unfinished.replace(path)
    _delete_oldest(directory)
    return path


def _has_header(path: Path) -> bool:
    """Whether Java finished writing: it writes the first bytes last."""
    try:
        with path.open("rb") as file:
            return any(file.read(4))
    except FileNotFoundError:
        return False


def _delete_oldest(directory: Path) -> None:
    archives = sorted(directory.glob(f"spark-*{_SUFFIX}"), key=lambda path: path.stat().st_mtime)
    for path in archives[:-SPARK_ARCHIVES_MAX]:
        path.unlink(missing_ok=True)


def _name(stem: str, size: int) -> str:
    return f"{stem}-{size}{_SUFFIX}"


def _unfinished_path(directory: Path, stem: str) -> Path:
    return directory / f"{stem}.unfinished"
