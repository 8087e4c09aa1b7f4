"""Steps of a schema change, as data: what changes, what it costs, and what has to be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self, assert_never

from omnigraph.model.brief import brief
from omnigraph.model.tables import TableKey
from omnigraph.schema.change_codes import ChangeCode

VALUES_WRITTEN_PER_SECOND: Final = 1_000_000
ROWS_CHECKED_PER_SECOND: Final = 5_000_000
"""About what one process with two cores and its own disk does, for estimates of schema changes."""


_SECONDS_SHOWN_MAX: Final = 90
_MINUTES_SHOWN_MAX: Final = 90
"""Longer estimates are in the next unit."""


class StepKind(StrEnum):
    """What a step changes. Append-only: programs match on these words."""

    ADD_INTERFACE = "add_interface"
    CHANGE_INTERFACE = "change_interface"
    DROP_INTERFACE = "drop_interface"
    ADD_TYPE = "add_type"
    RENAME_TYPE = "rename_type"
    DROP_TYPE = "drop_type"
    CHANGE_ENDS = "change_ends"
    ADD_PROPERTY = "add_property"
    RENAME_PROPERTY = "rename_property"
    DROP_PROPERTY = "drop_property"
    REORDER_PROPERTIES = "reorder_properties"
    CHANGE_TYPE = "change_type"
    WIDEN_ENUM = "widen_enum"
    NARROW_ENUM = "narrow_enum"
    REORDER_ENUM = "reorder_enum"
    REQUIRE_VALUE = "require_value"
    ALLOW_NULL = "allow_null"
    ADD_DEFAULT = "add_default"
    CHANGE_DEFAULT = "change_default"
    DROP_DEFAULT = "drop_default"
    ADD_EMBED = "add_embed"
    CHANGE_EMBED = "change_embed"
    DROP_EMBED = "drop_embed"
    ADD_KEY = "add_key"
    CHANGE_KEY = "change_key"
    DROP_KEY = "drop_key"
    ADD_UNIQUE = "add_unique"
    DROP_UNIQUE = "drop_unique"
    ADD_INDEX = "add_index"
    CHANGE_INDEX = "change_index"
    DROP_INDEX = "drop_index"
    ADD_RANGE = "add_range"
    TIGHTEN_RANGE = "tighten_range"
    LOOSEN_RANGE = "loosen_range"
    DROP_RANGE = "drop_range"
    ADD_CHECK = "add_check"
    DROP_CHECK = "drop_check"
    ADD_LENGTH = "add_length"
    TIGHTEN_LENGTH = "tighten_length"
    LOOSEN_LENGTH = "loosen_length"
    DROP_LENGTH = "drop_length"
    TIGHTEN_CARDINALITY = "tighten_cardinality"
    LOOSEN_CARDINALITY = "loosen_cardinality"
    ADD_IMPLEMENTS = "add_implements"
    DROP_IMPLEMENTS = "drop_implements"
    CHANGE_DESCRIPTION = "change_description"
    CHANGE_ANNOTATION = "change_annotation"


_OPTIONAL_CHANGES: Final = frozenset({StepKind.CHANGE_DESCRIPTION, StepKind.CHANGE_ANNOTATION})
"""Kinds of steps that also stand for an addition and a removal."""


class Cost(StrEnum):
    """What a step does to the rows of a type, from nothing to not at all."""

    METADATA = "metadata"
    """Rows are neither read nor written."""
    VALIDATED = "validated"
    """The columns in question are read, and nothing is rewritten."""
    REWRITTEN = "rewritten"
    """The column in question is written, and not its neighbours."""
    REFUSED = "refused"


class RuleWord(StrEnum):
    """The rules that a schema change can require of rows, by their words in violations."""

    REQUIRED = "required"
    TYPE = "type"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    LENGTH = "length"
    KEY = "key"
    """Every id is the text of the key (`model.identity`), and no two are equal."""
    UNIQUE = "unique"
    CARDINALITY = "cardinality"


@dataclass(frozen=True, slots=True, order=True)
class RuleCheck:
    """A rule that the rows have to obey after the change, by the names of the new schema."""

    rule: RuleWord
    table: TableKey
    properties: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The check as plain values that JSON can represent."""
        return {
            "rule": str(self.rule),
            "type": str(self.table),
            "properties": list(self.properties),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The check that `to_json` was called for."""
        table = TableKey.parse(fields["type"])
        return cls(RuleWord(fields["rule"]), table, tuple(fields["properties"]))


def describe_estimate(seconds: float) -> str:
    """An estimated duration for people, as vague as it is.

    >>> [describe_estimate(seconds) for seconds in (0.2, 12.4, 150, 9000)]
    ['under a second', 'about 12 s', 'about 2 min', 'about 2.5 h']
    """
    if seconds < 1:
        return "under a second"
    if seconds < _SECONDS_SHOWN_MAX:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    return (
        f"about {minutes:.0f} min"
        if minutes < _MINUTES_SHOWN_MAX
        else f"about {minutes / 60:.1f} h"
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a step is refused, and what to do instead."""

    code: ChangeCode
    reason: str
    way: str


@brief
@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One change of a schema.

    Attributes:
        declaration: The type or interface in the new schema, or in the old one if it is dropped:
            `node:Person`, `edge:Knows`, `interface:Named`.
        property_name: The property in the new schema, or in the old one if it is dropped; None
            for a change of the whole type.
        before: What the old schema declares, in its language; None if that is nothing.
        after: What the new schema declares.
        rows: How many rows are read, written, or no longer shown.
        checks: The rules to check on the result.
        refusal: Present if and only if the cost is `refused`.
    """

    kind: StepKind
    declaration: str
    property_name: str | None = None
    before: str | None = None
    after: str | None = None
    cost: Cost = Cost.METADATA
    rows: int = 0
    checks: tuple[RuleCheck, ...] = ()
    refusal: Refusal | None = None

    @property
    def type_name(self) -> str:
        """The name of the type or interface."""
        return self.declaration.partition(":")[2]

    @property
    def is_of_interface(self) -> bool:
        """Whether it is about an interface, which has no rows."""
        return self.declaration.startswith("interface:")

    @property
    def place(self) -> str:
        """What changes, for people.

        >>> SchemaStep(StepKind.ALLOW_NULL, "node:Person", "age").place
        'Person.age'
        """
        return f"{self.type_name}.{self.property_name}" if self.property_name else self.type_name

    def describe(self) -> str:
        """What changes, in one line.

        >>> SchemaStep(StepKind.ALLOW_NULL, "node:Person", "age", "I32", "I32?").describe()
        'allow null Person.age: I32 -> I32?'
        """
        words = str(self.kind).replace("_", " ")
        # The declaration of a property starts with its name, which the place ends with.
        repeated = f"{self.property_name}: "
        match self.before, self.after:
            case None, None:
                change = ""
            case (None, str(given)) | (str(given), None) if self.kind in _OPTIONAL_CHANGES:
                change = f": none -> {given}" if self.before is None else f": {given} -> none"
            case None, str(after):
                change = f": {after.removeprefix(repeated)}"
            case str(before), None:
                change = f": {before.removeprefix(repeated)}"
            case before, after if self.kind is StepKind.CHANGE_ENDS:
                # The ends have an arrow of their own.
                change = f": from {before} to {after}"
            case before, after:
                change = f": {before} -> {after}"
        return f"{words} {self.place}{change}"

    @property
    def seconds_estimated(self) -> float:
        """About how long the step takes on one machine with its own disk; 0 if it reads no rows."""
        match self.cost:
            case Cost.METADATA | Cost.REFUSED:
                return 0.0
            case Cost.VALIDATED:
                return self.rows / ROWS_CHECKED_PER_SECOND
            case Cost.REWRITTEN:
                return self.rows / VALUES_WRITTEN_PER_SECOND
            case _:
                assert_never(self.cost)

    def describe_with_cost(self) -> str:
        """What changes and what that costs, and in a second line why it is refused.

        >>> step = SchemaStep(StepKind.ALLOW_NULL, "node:Person", "age", "I32", "I32?")
        >>> step.describe_with_cost()
        'allow null Person.age: I32 -> I32?  [metadata]'
        >>> step = SchemaStep(
        ...     *(StepKind.CHANGE_TYPE, "node:Person", "age", "I32", "I64"),
        ...     cost=Cost.REWRITTEN,
        ...     rows=90_000_000,
        ... )
        >>> step.describe_with_cost()
        'change type Person.age: I32 -> I64  [rewritten, 90,000,000 rows, about 2 min]'
        """
        count = f", {self.rows:,} row{'s' * (self.rows != 1)}" if self.rows else ""
        estimate = self.seconds_estimated
        duration = f", {describe_estimate(estimate)}" if estimate else ""
        line = f"{self.describe()}  [{self.cost}{count}{duration}]"
        if self.refusal is None:
            return line
        return f"{line}\n  {self.refusal.code}: {self.refusal.reason}; {self.refusal.way}"

    def to_json(self) -> dict[str, object]:
        """The step as plain values that JSON can represent; fields without a value are left out."""
        document: dict[str, object] = {"step": str(self.kind), "declaration": self.declaration}
        optional = {"property": self.property_name, "before": self.before, "after": self.after}
        document |= {name: value for name, value in optional.items() if value is not None}
        document |= {"cost": str(self.cost), "rows": self.rows}
        if self.seconds_estimated:
            document["seconds_estimated"] = round(self.seconds_estimated, 1)
        if self.checks:
            document["checks"] = [check.to_json() for check in self.checks]
        if self.refusal is not None:
            document["code"] = str(self.refusal.code)
            document["reason"] = self.refusal.reason
            document["way"] = self.refusal.way
        return document

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The step that `to_json` was called for."""
        refusal = None
        if "code" in fields:
            refusal = Refusal(ChangeCode.parse(fields["code"]), fields["reason"], fields["way"])
        return cls(
            StepKind(fields["step"]),
            fields["declaration"],
            fields.get("property"),
            fields.get("before"),
            fields.get("after"),
            Cost(fields["cost"]),
            fields["rows"],
            tuple(map(RuleCheck.from_json, fields.get("checks", ()))),
            refusal,
        )
