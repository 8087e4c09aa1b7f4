"""Codes of schema changes: why a step is refused, and what is wrong with a hint or a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from omnigraph.lang.diagnostics import Severity


class ChangeCode(StrEnum):
    """Every rule of schema changes. Append-only: programs and documents name these.

    `OG-DS` is a step that would destroy what rows mean, `OG-MF` one that may fail on some row,
    `OG-RN` a wrong hint of a rename, `OG-RQ` a wrong request of the caller, `OG-WN` a warning.
    """

    sentence: str

    def __new__(cls, code: str, sentence: str) -> ChangeCode:
        """Give each code the sentence that the reference shows beside it."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    KEY_CHANGE = "OG-DS-01", "A key keeps its members and their order while the type has rows."
    KEY_TYPE_CHANGE = "OG-DS-02", "A member of a key keeps its type while the type has rows."
    ENDS_CHANGE = "OG-DS-03", "An edge type keeps its ends while it has rows."
    NO_CONVERSION = "OG-DS-04", "A type changes only into one that its values convert to."
    NO_VALUE = "OG-MF-01", "A new required property needs a value for the rows that exist."
    CONVERSION_NOT_REQUESTED = "OG-MF-02", "A conversion that may fail has to be requested."
    UNKNOWN_FORMER_NAME = "OG-RN-01", "A former name is one that the present schema declares."
    FORMER_NAME_OF_OTHER_KIND = "OG-RN-02", "A node type continues a node type, an edge an edge."
    FORMER_NAME_IN_USE = "OG-RN-03", "A former name is not declared any more."
    UNKNOWN_PROPERTY_REQUESTED = "OG-RQ-01", "A fill or a conversion names a property there is."
    FILL_WITHOUT_USE = "OG-RQ-02", "A fill gives values to a new property of an existing type."
    CONVERSION_WITHOUT_USE = "OG-RQ-03", "A conversion is requested where a type needs one."
    HINT_WITHOUT_USE = "OG-WN-01", "A hint of a rename has no effect where the name exists."
    HINT_OF_INTERFACE = "OG-WN-02", "A hint of an interface may have no effect on some types."
    LIKELY_RENAME = "OG-WN-03", "A drop and an addition of the same shape may be a rename."
    STORED_QUERY_BREAKS = "OG-WN-04", "A stored query may not fit the new schema."

    @classmethod
    def parse(cls, text: str) -> ChangeCode:
        """The code with this text, which has to be one."""
        return next(code for code in cls if code == text)

    @property
    def severity(self) -> Severity:
        """Codes that start with `OG-WN` are warnings."""
        return Severity.WARNING if self.startswith("OG-WN") else Severity.ERROR


@dataclass(frozen=True, slots=True)
class ChangeFinding:
    """Something wrong with a request to change a schema, or worth a warning.

    Attributes:
        type_name: The type in the new schema, as far as there is one.
    """

    code: ChangeCode
    type_name: str
    property_name: str | None
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.code.severity}[{self.code}]: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text

    def to_json(self) -> dict[str, object]:
        """The finding as plain values that JSON can represent."""
        return {
            "code": str(self.code),
            "severity": str(self.code.severity),
            "type": self.type_name,
            "property": self.property_name,
            "message": self.message,
            "hint": self.hint,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The finding that `to_json` was called for."""
        code = ChangeCode.parse(fields["code"])
        return cls(code, fields["type"], fields["property"], fields["message"], fields["hint"])
