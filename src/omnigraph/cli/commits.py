"""Commits as JSON and as facts: the fields to rely on, without internal bookkeeping."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph.model.commits import Commit
    from omnigraph.model.let_go import LetGo

_INTERNAL: Final = frozenset({"ref", "generation"})


def commit_facts(commit: Commit, let_go: LetGo | None = None) -> dict[str, object]:
    """The public fields of a commit, by name, and when and why it expired."""
    facts = {name: fact for name, fact in asdict(commit).items() if name not in _INTERNAL}
    return {**facts, "let_go": None if let_go is None else asdict(let_go)}


def subject(commit: Commit, let_go: LetGo | None = None) -> str:
    """The first line of a commit's message, for lists; `commit show` and JSON have the others."""
    mark = "" if let_go is None else "(expired) "
    return mark + (commit.message or "").partition("\n")[0]
