"""A graph's interrupted writes: `graph.recoveries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.recovery.entries import RecoveryEntry
    from omnigraph.recovery.pending import Pending
    from omnigraph.recovery.sweep import Recovery


class Recoveries:
    """A graph's interrupted writes: `graph.recoveries`."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery

    def list(self) -> tuple[RecoveryEntry, ...]:
        """Every recovery, oldest first."""
        return self._recovery.audit.entries()

    def pending(self) -> Pending:
        """The writes that are running or were interrupted. Nothing is recovered."""
        return self._recovery.pending()
