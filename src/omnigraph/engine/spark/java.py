"""Java: its location, its version, and the error without it."""

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
    """The `java` that Spark will run: that of JAVA_HOME, else the first on the PATH.

    Where there is none, or it is too old, that of `omnigraph[java]` replaces it.
    """
    installed = _installed_java()
    if installed is not None and not _is_too_old(installed):
        return installed
    # Imported here: it is rarely needed, and imports an optional package.
    from omnigraph.engine.spark.bundled import bundled_java

    return bundled_java() or installed


def _installed_java() -> Path | None:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return java
    java_on_path = shutil.which("java")
    return Path(java_on_path) if java_on_path else None


def _is_too_old(java: Path) -> bool:
    version = java_version(java)
    return version is not None and int(version.partition(".")[0]) < JAVA_MAJOR_MIN


def require_java() -> Path:
    """The `java` that Spark will run."""
    java = find_java()
    if java is None:
        message = "the Spark engine needs Java, and none was found"
        raise unavailable_error(message)
    if _is_too_old(java):
        version = java_version(java)
        message = f"the Spark engine needs Java {JAVA_MAJOR_MIN}, and {java} is Java {version}"
        raise unavailable_error(message)
    return java


def unavailable_error(message: str) -> InvalidInputError:
    """The error of a machine on which Spark cannot start, with the remedy."""
    return InvalidInputError(message, hint=_REMEDY, code=ErrorCode.ENGINE_UNAVAILABLE)


def java_version(java: Path) -> str | None:
    """The version in the runtime's `release` file, such as 17.0.15; None if it has no such file."""
    match = _VERSION.search(release_text(java))
    return match[1] + match[2] if match else None


def release_text(java: Path) -> str:
    """The runtime's `release` file, which names its exact build; empty if it has none."""
    try:
        return (java.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
