"""Commits as JSON and as facts: what people may rely on, without our own bookkeeping."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph.model.commits import Commit

_OWN: Final = frozenset({"ref", "generation"})


def commit_facts(commit: Commit) -> dict[str, object]:
    """What a commit says of itself, by name."""
    return {name: fact for name, fact in asdict(commit).items() if name not in _OWN}
