"""The type of a proof, and combinations of proofs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule

Proof: TypeAlias = "Callable[[RowRules | SetRule], bool]"
"""Whether a write is proven to keep a rule; False where that is in doubt."""


def any_of(*proofs: Proof) -> Proof:
    """A proof of whatever one of the proofs proves, tried in their order."""

    def is_proven(rule: RowRules | SetRule) -> bool:
        return any(proof(rule) for proof in proofs)

    return is_proven


def no_proof(rule: RowRules | SetRule) -> bool:  # noqa: ARG001  # a proof's
    """Prove nothing, so that an engine checks every rule."""
    return False


def by_checked_rows(rule: RowRules | SetRule) -> bool:
    """Prove the row rules of a write whose rows were all checked when they were read."""
    return isinstance(rule, RowRules)
