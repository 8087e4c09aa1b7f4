"""Commits as JSON and as facts: the fields to rely on, without internal bookkeeping."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph.model.commits import Commit

_INTERNAL: Final = frozenset({"ref", "generation"})


def commit_facts(commit: Commit) -> dict[str, object]:
    """The public fields of a commit, by name."""
    return {name: fact for name, fact in asdict(commit).items() if name not in _INTERNAL}


def subject(commit: Commit) -> str:
    """The first line of a commit's message, for lists; `commit show` and JSON have the others."""
    return (commit.message or "").partition("\n")[0]
