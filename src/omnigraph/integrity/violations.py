"""Violations: data that breaks a rule, with exact counts and the first offenders.

Only the standard library is needed to read one: the command line and the server render them
without loading an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.model.brief import brief

ToOrigin: TypeAlias = "Callable[[int], str]"
"""Names the row at a position of a writer's input, such as `people.jsonl:17`."""

_NAMED_MAX: Final = 3
"""Offenders named in an error's message; its report has more."""

_SHOWN_MAX: Final = 100
"""Characters of a value that a message shows."""


class Rule(StrEnum):
    """What data can break. Programs match on these values."""

    REQUIRED = "required"
    """A value, an item of a list or an end of an edge is null and may not be."""
    TYPE = "type"
    """A value is not of its property's type, or there is no such property."""
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    LENGTH = "length"
    KEY = "key"
    """An id occurs twice among the rows to write, or a key has a number that is not finite."""
    EXISTS = "exists"
    """A row of an `append` has the id of one that exists: a key conflict."""
    UNIQUE = "unique"
    ENDPOINT = "endpoint"
    """An edge to write leads from or to a node that does not exist."""
    CARDINALITY = "cardinality"
    STRANDED = "stranded"
    """A remaining edge leads from or to a deleted node."""


def no_origin(position: int) -> str:  # noqa: ARG001
    """The origin of rows that a writer has no names for: empty."""
    return ""


def origin_at(position: object, to_origin: ToOrigin) -> str:
    """The origin of a row at a position that an engine returned; empty for null."""
    return "" if position is None else to_origin(cast("int", position))


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken rule: its kind, and the type and properties that it is stated for."""

    rule: Rule
    type_name: str
    properties: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule} {self.type_name}({', '.join(self.properties)})"


@brief
@dataclass(frozen=True, slots=True)
class Violation:
    """One offender.

    Attributes:
        id: The id of the row; of the source node, for a cardinality. None where a row could not
            be given one.
        value: The value that breaks the rule; a tuple where it has several properties.
        origin: Where the row is from, such as `people.jsonl:17`; empty if that is not known.
        message: The facts in one sentence.
        rival: The id of another row that breaks the rule together with this one, if it is known.
    """

    breach: Breach
    id: str | None
    value: object
    origin: str
    message: str
    rival: str | None = field(default=None, compare=False, repr=False)

    @property
    def rule(self) -> Rule:
        """The rule that it breaks."""
        return self.breach.rule

    @property
    def type_name(self) -> str:
        """The type whose rule it is."""
        return self.breach.type_name

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that the rule is stated for."""
        return self.breach.properties

    def __str__(self) -> str:
        return f"{self.origin}: {self.message}" if self.origin else self.message

    def facts(self) -> dict[str, object]:
        """The violation as plain values that JSON can represent."""
        return {
            "rule": str(self.rule),
            "type": self.type_name,
            "properties": list(self.properties),
            "id": self.id,
            "value": _plain(self.value),
            "origin": self.origin,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """The result of a check: exact counts, and the first offenders of each breach.

    Attributes:
        counts: How many offenders each breach has; a rule that holds is not listed.
        violations: At most `OFFENDERS_SHOWN_MAX` of each breach, in an order that depends on the
            data alone.
    """

    counts: Mapping[Breach, int] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no rule is broken."""
        return not self.counts

    @property
    def total(self) -> int:
        """How many violations there are."""
        return sum(self.counts.values())

    def counts_by_rule(self) -> dict[Rule, int]:
        """How many violations each rule has, over all types and properties."""
        totals: dict[Rule, int] = {}
        for breach, count in self.counts.items():
            totals[breach.rule] = totals.get(breach.rule, 0) + count
        return totals

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only view of a dictionary cannot be pickled.
        return IntegrityReport, (dict(self.counts), self.violations)


class Tally:
    """Builds a report: counts everything, keeps the first offenders of each breach."""

    def __init__(self) -> None:
        self._counts: dict[Breach, int] = {}
        self._first: dict[Breach, list[Violation]] = {}

    def add(self, violation: Violation) -> None:
        """Count one violation, and keep it if it is among the first."""
        self.add_offenders(violation.breach, 1, [violation])

    def add_offenders(self, breach: Breach, count: int, first: Iterable[Violation]) -> None:
        """Count offenders of one breach, of which these are the first."""
        if not count:
            return
        self._counts[breach] = self._counts.get(breach, 0) + count
        violations = self._first.setdefault(breach, [])
        violations.extend(first)
        del violations[OFFENDERS_SHOWN_MAX:]

    def add_report(self, report: IntegrityReport) -> None:
        """Add the counts and violations of another report."""
        for breach, count in report.counts.items():
            first = [one for one in report.violations if one.breach == breach]
            self.add_offenders(breach, count, first)

    def report(self) -> IntegrityReport:
        """The report of what was added so far."""
        violations = tuple(chain.from_iterable(self._first.values()))
        return IntegrityReport(MappingProxyType(dict(self._counts)), violations)


class IntegrityError(OmnigraphError):
    """The data breaks rules of the schema; `report` has all of it. Nothing became visible."""

    default_code = ErrorCode.INTEGRITY

    def __init__(
        self,
        report: IntegrityReport,
        *,
        hint: str = "fix the data and write it again; nothing was changed",
    ) -> None:
        super().__init__(
            _summary(report),
            hint=hint,
            total=report.total,
            counts=[
                {
                    "rule": str(breach.rule),
                    "type": breach.type_name,
                    "properties": list(breach.properties),
                    "count": count,
                }
                for breach, count in report.counts.items()
            ],
            violations=[violation.facts() for violation in report.violations],
        )
        self.report = report

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The first offenders of each breach."""
        return self.report.violations

    @property
    def types(self) -> frozenset[str]:
        """The types whose rules are broken."""
        return frozenset(breach.type_name for breach in self.report.counts)

    @property
    def counts(self) -> dict[Rule, int]:
        """How many violations each rule has."""
        return self.report.counts_by_rule()

    def __reduce__(self) -> tuple[object, ...]:
        # The attributes are included for the notes among them.
        return IntegrityError, (self.report,), vars(self)


def require_clean(report: IntegrityReport) -> None:
    """Refuse a report with violations.

    Raises:
        IntegrityError: the report has violations.
    """
    if not report.is_clean:
        raise IntegrityError(report)


def shorten(value: object) -> str:
    """The text of a value for a message, within `_SHOWN_MAX` characters.

    >>> shorten("Ada"), shorten(7), len(shorten("a" * 1000))
    ("'Ada'", '7', 100)
    """
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def _summary(report: IntegrityReport) -> str:
    count = "1 violation" if report.total == 1 else f"{report.total:,} violations"
    lines = [f"the data breaks the schema: {count}"]
    for breach, number in report.counts.items():
        first = [one for one in report.violations if one.breach == breach][:_NAMED_MAX]
        lines.append(f"  {breach}: {number:,}")
        lines += [f"    {violation}" for violation in first]
        if number > len(first):
            lines.append(f"    … and {number - len(first):,} more")
    return "\n".join(lines)


def _plain(value: object) -> object:
    """The value for JSON: numbers that JSON would round or refuse become text."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 1 << 53:
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return str(value)
