"""What a mistyped path may have been meant for: files and graphs of this machine that are near."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from omnigraph.lang.diagnostics import nearest
from omnigraph.storage.roots import Root

_LOOKED_AT_MAX: Final = 1000
"""Entries of a directory that are looked at: a hint is worth no more."""


def near_file(path: Path, *, otherwise: str = "check the path") -> str:
    """A hint for a file that is not there."""
    by_stem: dict[str, str] = {}
    for each in _beside(path):
        # Suffixes alone make no two names alike; among those that are, the right one has the same.
        if each.suffix == path.suffix or each.stem not in by_stem:
            by_stem[each.stem] = each.name
    near = nearest(path.stem, by_stem)
    return otherwise if near is None else f"did you mean {by_stem[near]}?"


def near_graph(root: Root, mark: str) -> str | None:
    """The graph that was meant by a directory which is none: around it, within it or beside it.

    Args:
        mark: What every graph has at its root.
    """
    if not root.is_local:
        return None
    path = Path(root.uri)
    around = [each for each in path.parents if _has(each, mark)]
    within = [each for each in _inside(path) if _has(each, mark)]
    beside = {each.stem: each for each in _beside(path) if _has(each, mark)}
    if around or len(within) == 1:
        return str((around or within)[0])
    near = nearest(path.stem, beside)
    return None if near is None else str(beside[near])


def _beside(path: Path) -> list[Path]:
    return _inside(path.parent)


def _inside(path: Path) -> list[Path]:
    try:
        return sorted(islice(path.iterdir(), _LOOKED_AT_MAX))
    except OSError:
        return []


def _has(path: Path, mark: str) -> bool:
    try:
        return (path / mark).is_dir()
    except OSError:
        return False
