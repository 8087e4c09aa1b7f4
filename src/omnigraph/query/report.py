"""The report: collects the diagnostics of a query text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from omnigraph.lang.diagnostics import Diagnostic, Severity, did_you_mean
from omnigraph.lang.source import Span
from omnigraph.model.former_names import FormerNames
from omnigraph.query.codes import QueryCode

DIAGNOSTICS_MAX: Final = 100
"""A longer list helps no reader, and each entry may cost a search for the nearest name."""


@dataclass(slots=True)
class Report:
    """Collects at most `DIAGNOSTICS_MAX` diagnostics of each severity; later ones are dropped.

    Attributes:
        former: The names that types and properties had before.
    """

    former: FormerNames = field(default_factory=FormerNames)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _room: dict[Severity, int] = field(
        default_factory=lambda: dict.fromkeys(Severity, DIAGNOSTICS_MAX)
    )

    def add(self, code: QueryCode, span: Span, message: str, hint: str = "") -> None:
        """Report a broken rule or a warning."""
        if self._room[code.severity]:
            self._room[code.severity] -= 1
            self.diagnostics.append(Diagnostic(code, span, message, hint, code.severity))

    def add_unknown_name(
        self,
        code: QueryCode,
        name: str,
        span: Span,
        message: str,
        known: Iterable[str],
        former: str = "",
    ) -> None:
        """Report an unknown name, with the nearest known one as a hint.

        Args:
            former: What became of something that had this name; a better hint.
        """
        if self._room[code.severity]:
            self.add(code, span, message, former or did_you_mean(name, known))
