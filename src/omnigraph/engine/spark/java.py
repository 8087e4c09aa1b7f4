"""Java: where it is, which version, and what to say without it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from omnigraph.errors import ErrorCode, InvalidInputError

JAVA_MAJOR_MIN: Final = 17
"""The oldest Java that this release of Spark runs on."""

_REMEDY: Final = (
    "install Java 17 or newer, or pip install 'omnigraph[java]', or use the local engine: "
    "--engine local, or engine='local' in Python"
)
_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+)([^"]*)"', re.MULTILINE)


def find_java() -> Path | None:
    """The `java` that Spark will run: JAVA_HOME's where it has one, else the first on the PATH.

    Where there is none, or it is too old, that of `omnigraph[java]` takes its place.
    """
    installed = _installed_java()
    if installed is not None and not _is_too_old(installed):
        return installed
    # Imported here: it is rarely needed, and looks for a package of its own.
    from omnigraph.engine.spark.bundled import bundled_java

    return bundled_java() or installed


def _installed_java() -> Path | None:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return java
    found = shutil.which("java")
    return Path(found) if found else None


def _is_too_old(java: Path) -> bool:
    version = java_version(java)
    return version is not None and int(version.partition(".")[0]) < JAVA_MAJOR_MIN


def require_java() -> Path:
    """The `java` that Spark will run.

    Raises:
        InvalidInputError: there is none, or it is too old. Nothing was started.
    """
    java = find_java()
    if java is None:
        message = "the Spark engine needs Java, and none was found"
        raise unavailable(message)
    if _is_too_old(java):
        version = java_version(java)
        message = f"the Spark engine needs Java {JAVA_MAJOR_MIN}, and {java} is Java {version}"
        raise unavailable(message)
    return java


def unavailable(message: str) -> InvalidInputError:
    """The error of a machine on which Spark cannot start, with the remedy."""
    return InvalidInputError(message, hint=_REMEDY, code=ErrorCode.ENGINE_UNAVAILABLE)


def java_version(java: Path) -> str | None:
    """What the runtime's own `release` file says, such as 17.0.15; None if it has no such file."""
    found = _VERSION.search(release_text(java))
    return found[1] + found[2] if found else None


def release_text(java: Path) -> str:
    """The runtime's `release` file, which names its exact build; empty if it has none."""
    try:
        return (java.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
