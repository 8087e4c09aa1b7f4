"""What a proof is, and how several are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule

Proof: TypeAlias = "Callable[[RowRules | SetRule], bool]"
"""Whether a write is shown to keep a rule; False where that is in doubt."""


def any_of(*proofs: Proof) -> Proof:
    """A proof of what any of some proofs shows, tried in their order."""

    def is_proven(rule: RowRules | SetRule) -> bool:
        return any(proof(rule) for proof in proofs)

    return is_proven


def nothing(rule: RowRules | SetRule) -> bool:  # noqa: ARG001  # a proof's
    """Show nothing, so that an engine checks every rule."""
    return False


def rows_checked(rule: RowRules | SetRule) -> bool:
    """Show the row rules of a write whose rows were all checked when they were read."""
    return isinstance(rule, RowRules)
