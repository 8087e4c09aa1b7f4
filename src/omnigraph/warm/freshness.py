"""Freshness: whether what the starter has imported is still what a new process would import."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

Fingerprint = tuple[int, int, int]


def imported_files() -> dict[str, Fingerprint]:
    """Every file that this process has imported, and the other files of the package."""
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    package = Path(__file__).parents[1]
    # Grammars, and what else is read while modules are imported.
    others = [
        str(path)
        for path in package.rglob("*")
        if path.suffix not in (".py", ".pyc") and path.is_file()
    ]
    paths = [path for path in {*modules, *others} if path is not None]
    return {path: fingerprint for path in paths if (fingerprint := _fingerprint(path)) is not None}


def is_fresh(files: Mapping[str, Fingerprint]) -> bool:
    """Whether all of them are as they were."""
    return all(_fingerprint(path) == fingerprint for path, fingerprint in files.items())


def _fingerprint(path: str) -> Fingerprint | None:
    try:
        facts = os.stat(path)  # noqa: PTH116  # a thousand times for each command
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
