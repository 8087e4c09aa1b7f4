"""Suggestions for a mistyped path: files and graphs of this machine with a similar name."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from omnigraph.lang.diagnostics import nearest
from omnigraph.storage.roots import Root

_ENTRIES_MAX: Final = 1000
"""Entries of a directory that are compared: a hint is not worth more."""


def near_file(path: Path, *, otherwise: str = "check the path") -> str:
    """A hint for a file that does not exist."""
    by_stem: dict[str, str] = {}
    for sibling in _beside(path):
        # Stems decide which names are similar; of equal stems, prefer the one with our suffix.
        if sibling.suffix == path.suffix or sibling.stem not in by_stem:
            by_stem[sibling.stem] = sibling.name
    near = nearest(path.stem, by_stem)
    return otherwise if near is None else f"did you mean {by_stem[near]}?"


def near_graph(root: Root, mark: str) -> str | None:
    """The graph probably meant by a directory that is no graph itself: a parent, child or sibling.

    Args:
        mark: The name of the directory that every graph has at its root.
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
        return sorted(islice(path.iterdir(), _ENTRIES_MAX))
    except OSError:
        return []


def _has(path: Path, mark: str) -> bool:
    try:
        return (path / mark).is_dir()
    except OSError:
        return False
