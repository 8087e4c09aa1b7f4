"""Findings: one code per rule of the schema language, and the place where a rule is broken."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.lang.diagnostics import Severity
from omnigraph.model.brief import brief


class SchemaCode(StrEnum):
    """Every rule a schema can break. Append-only: programs and documents name these."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> SchemaCode:
        """Give each code the sentence that the reference shows beside it."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    SYNTAX = "S000", "The text does not follow the grammar."
    UNKNOWN_TYPE = "S001", "A property's type must be one the language has."
    UNKNOWN_NODE_TYPE = "S002", "An edge must join node types that the schema declares."
    UNKNOWN_INTERFACE = "S003", "A node may implement only interfaces that the schema declares."
    DUPLICATE_TYPE = "S004", "Interfaces, node types and edge types share one set of names."
    EDGE_NAME_CASE = "S005", "Edge names must differ by more than case."
    DUPLICATE_PROPERTY = "S006", "Properties of one type must differ by more than case."
    RESERVED_NAME = "S007", "A property may not take the name of a column we keep."
    INVALID_NAME = "S008", "A name must be spelt as the language spells names, and not too long."
    UNKNOWN_PROPERTY = "S009", "A constraint may name only properties of its own type."
    INVALID_ENUM = "S010", "An enum needs at least one value, and each value once."
    INVALID_VECTOR = "S011", "A vector's dimension must lie between 1 and the limit."
    SECOND_KEY = "S012", "A type has at most one key."
    KEY_MEMBER = "S013", "A key member may not be nullable, a list, a Vector or a Blob."
    UNIQUE_MEMBER = "S014", "A unique member may not be a list, a Vector or a Blob."
    DUPLICATE_CONSTRAINT = "S015", "A constraint is stated once and names each property once."
    INDEX_MEMBER = "S016", "An index needs a String, an enum, another scalar or a Vector."
    RANGE_MEMBER = "S017", "A range needs a number, a Date or a DateTime."
    RANGE_BOUNDS = "S018", "A range needs a bound, bounds of its property's type, and low <= high."
    CHECK_MEMBER = "S019", "A check needs a String."
    CHECK_PATTERN = "S020", "A check's pattern must mean the same to every engine."
    CARDINALITY = "S021", "A cardinality needs 0 <= minimum <= maximum."
    DEFAULT = "S022", "A default must be a value of its property's type."
    EMBED = "S023", "An embedding fills a Vector from String properties of the same type."
    RENAME = "S024", "A rename names one former name, which no other claims."
    INTERFACE_MISMATCH = "S025", "A property an interface promises must have the same type."
    MISUSED_ANNOTATION = "S026", "An annotation stands where it has a meaning, with its arguments."
    DUPLICATE_ANNOTATION = "S027", "An annotation with a meaning is given once."
    INVALID_TEXT = "S028", "Text must be Unicode, and a number finite and at most 64 bits."
    CONSTRAINT_ARGUMENTS = "S029", "A constraint needs the arguments its rule speaks of."
    LENGTH_MEMBER = "S030", "A length needs a String or a list."
    LENGTH_BOUNDS = "S031", "A length needs a bound, whole numbers from 0 on, and low <= high."
    INDEX_OPTIONS = (
        "S032",
        "An index has an analyzer and positions on a String, a kind and a metric on a Vector.",
    )
    UNKNOWN_ANNOTATION = "S100", "An annotation without a meaning is kept, and nothing reads it."
    UNKNOWN_MODEL = "S101", "A model that no provider has cannot embed anything."
    UNMADE_VECTOR = "S102", "Vectors that the default model cannot make come with the data."

    @property
    def severity(self) -> Severity:
        """Codes from S100 on are warnings."""
        return Severity.WARNING if self >= "S100" else Severity.ERROR


Path = tuple[str | int, ...]
"""A place in a sequence of declarations: `(2, "properties", 0, "default")`."""


@brief
@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken at one place.

    A text gives the place a line and a column. A schema built by hand has neither, so the message
    alone names the type and the property at fault.
    """

    code: SchemaCode
    path: Path
    message: str
    hint: str = ""


def repeated_positions(values: Iterable[Hashable]) -> Iterator[int]:
    """The positions of values that also occur earlier.

    >>> list(repeated_positions("abca"))
    [3]
    """
    seen: set[Hashable] = set()
    for position, value in enumerate(values):
        if value in seen:
            yield position
        seen.add(value)


class InvalidSchemaError(InvalidInputError):
    """A schema built in Python, or read from JSON, breaks the rules; `findings` has all of them."""

    default_code = ErrorCode.INVALID_SCHEMA

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(
            "; ".join(f"{finding.code}: {finding.message}" for finding in self.findings),
            hint="; ".join(
                dict.fromkeys(finding.hint for finding in self.findings if finding.hint)
            ),
        )

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidSchemaError, (self.findings,)
