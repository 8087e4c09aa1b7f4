"""Property types: the types that a property of the schema may have, as a closed union."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LENGTH_MAX: Final = 2**31 - 1
"""Characters of a text, or items of a list, that a length can bound."""

VECTOR_DIMENSION_MAX: Final = 65_536
"""Wider than any embedding in use; a row group of them must still fit in memory."""


class Scalar(StrEnum):
    """The plain types, each by its name in the schema and query languages."""

    STRING = "String"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers with fixed bounds."""
        return self in INTEGER_BOUNDS

    @property
    def is_float(self) -> bool:
        """Whether values are binary floating point."""
        return self in (Scalar.F32, Scalar.F64)

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers, comparable with numbers of any other numeric type."""
        return self.is_integer or self.is_float

    @property
    def is_temporal(self) -> bool:
        """Whether values are dates or instants."""
        return self in (Scalar.DATE, Scalar.DATETIME)


INTEGER_BOUNDS: Final = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
"""The least and greatest value of each integer type, both included."""


@dataclass(frozen=True, slots=True)
class BlobType:
    """Bytes stored beside the table and read on demand."""

    def __str__(self) -> str:
        return "Blob"


@dataclass(frozen=True, slots=True)
class ListType:
    """Any number of items of one type; the list may be empty, an item may not be null."""

    item: Scalar | BlobType

    def __str__(self) -> str:
        return f"[{self.item}]"


@dataclass(frozen=True, slots=True)
class EnumType:
    """Text from a fixed set, in declared order.

    >>> str(EnumType(("draft", "in-review")))
    'enum(draft, in-review)'
    """

    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"enum({', '.join(self.values)})"


@dataclass(frozen=True, slots=True)
class VectorType:
    """A fixed number of 32-bit floats."""

    dimension: int

    def __str__(self) -> str:
        return f"Vector({self.dimension})"


PropertyType = Scalar | ListType | EnumType | VectorType | BlobType
"""Every type a property may have. `str` of one is its name in both languages."""


@dataclass(frozen=True, slots=True)
class ObjectMember:
    """A value of an object, by its name."""

    name: str
    type: PropertyType
    nullable: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'?' * self.nullable}"


@dataclass(frozen=True, slots=True)
class StructType:
    """Values by name, as a column of a result; no property has this type.

    >>> str(StructType((ObjectMember("n", Scalar.I64, nullable=True),)))
    '{n: I64?}'
    """

    fields: tuple[ObjectMember, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.fields))}}}"


@dataclass(frozen=True, slots=True)
class WideType:
    """Whole numbers of up to 38 digits: what one part of a plan gives to another, and no caller."""

    def __str__(self) -> str:
        return "a whole number"


ResultType = PropertyType | StructType | WideType
"""Every type that a column of a result may have."""
