"""Violations: data that breaks a rule, counted exactly and shown by its first offenders.

Only the standard library is needed to read one: the command line and the server render them
without loading an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.limits import OFFENDERS_SHOWN_MAX

ToOrigin: TypeAlias = "Callable[[int], str]"
"""Names the row at a position of what a writer was given, such as `people.jsonl:17`."""

_NAMED_MAX: Final = 3
"""Offenders named in an error's message; its report has more."""

_SHOWN_MAX: Final = 100
"""Characters of a value that a message shows."""


class Rule(StrEnum):
    """What data can break. Programs match on these words."""

    REQUIRED = "required"
    """A value, an item of a list or an end of an edge is null and may not be."""
    TYPE = "type"
    """A value is not of its property's type, or no property takes it."""
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    LENGTH = "length"
    KEY = "key"
    """An id stands twice among the rows to write, or a key has a number that is not finite."""
    EXISTS = "exists"
    """A row that was to be new has the id of one that is there: a key conflict, for `append`."""
    UNIQUE = "unique"
    ENDPOINT = "endpoint"
    """An edge to write leads from or to a node that does not exist."""
    CARDINALITY = "cardinality"
    STRANDED = "stranded"
    """An edge that stays leads from or to a node that goes."""


def no_origin(position: int) -> str:  # noqa: ARG001
    """Of a writer that has no names for its rows."""
    return ""


def origin_at(position: object, to_origin: ToOrigin) -> str:
    """The origin of a row at a position that an engine found; empty where nobody said it."""
    return "" if position is None else to_origin(cast("int", position))


@dataclass(frozen=True, slots=True)
class Breach:
    """What was broken: the rule, and the type and properties it is stated for."""

    rule: Rule
    type_name: str
    properties: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule} {self.type_name}({', '.join(self.properties)})"


@dataclass(frozen=True, slots=True)
class Violation:
    """One offender.

    Attributes:
        id: The id of the row; of the source node, for a cardinality. None where a row could not
            be given one.
        value: What broke the rule, as a Python value; a tuple where several properties did.
        origin: Where the row came from, such as `people.jsonl:17`; empty if nobody said.
        message: The facts in one sentence.
    """

    breach: Breach
    id: str | None
    value: object
    origin: str
    message: str

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
        """The violation for programs: plain values that JSON can hold."""
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
class Report:
    """What a check found: exact counts, and the first offenders of each breach.

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
        return Report, (dict(self.counts), self.violations)


class Tally:
    """A report in the making: counts everything, keeps the first offenders of each breach."""

    def __init__(self) -> None:
        self._counts: dict[Breach, int] = {}
        self._kept: dict[Breach, list[Violation]] = {}

    def add(self, violation: Violation) -> None:
        """Count one violation, and keep it if it is among the first."""
        self.add_counted(violation.breach, 1, [violation])

    def add_counted(self, breach: Breach, count: int, first: Iterable[Violation]) -> None:
        """Count so many offenders of one breach, of which these are the first."""
        if not count:
            return
        self._counts[breach] = self._counts.get(breach, 0) + count
        kept = self._kept.setdefault(breach, [])
        kept.extend(first)
        del kept[OFFENDERS_SHOWN_MAX:]

    def add_report(self, report: Report) -> None:
        """Count everything that another check found."""
        for breach, count in report.counts.items():
            first = [each for each in report.violations if each.breach == breach]
            self.add_counted(breach, count, first)

    def report(self) -> Report:
        """What was found so far."""
        violations = tuple(each for kept in self._kept.values() for each in kept)
        return Report(MappingProxyType(dict(self._counts)), violations)


class IntegrityError(OmnigraphError):
    """The data breaks rules of the schema; `report` has all of it. Nothing became visible."""

    default_code = ErrorCode.INTEGRITY

    def __init__(self, report: Report) -> None:
        super().__init__(
            _summary(report),
            hint="fix the data and write it again; nothing was changed",
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
            violations=[each.facts() for each in report.violations],
        )
        self.report = report

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The first offenders of each breach."""
        return self.report.violations

    @property
    def counts(self) -> dict[Rule, int]:
        """How many violations each rule has."""
        return self.report.counts_by_rule()

    def __reduce__(self) -> tuple[object, ...]:
        # The attributes go along for the notes among them.
        return IntegrityError, (self.report,), vars(self)


def require_clean(report: Report) -> None:
    """Refuse what breaks a rule.

    Raises:
        IntegrityError: the report has violations.
    """
    if not report.is_clean:
        raise IntegrityError(report)


def shortened(value: object) -> str:
    """A value as a message shows it.

    >>> shortened("Ada"), shortened(7), len(shortened("a" * 1000))
    ("'Ada'", '7', 100)
    """
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def _summary(report: Report) -> str:
    count = "1 violation" if report.total == 1 else f"{report.total:,} violations"
    lines = [f"the data breaks the schema: {count}"]
    for breach, number in report.counts.items():
        shown = [each for each in report.violations if each.breach == breach][:_NAMED_MAX]
        lines.append(f"  {breach}: {number:,}")
        lines += [f"    {each}" for each in shown]
        if number > len(shown):
            lines.append(f"    … and {number - len(shown):,} more")
    return "\n".join(lines)


def _plain(value: object) -> object:
    """The value as JSON has it: numbers that it would round or refuse become text."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 1 << 53:
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return str(value)
