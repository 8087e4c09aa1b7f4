"""Changes of a property's type: which pairs convert, and what a conversion costs."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from omnigraph.model.types import EnumType, PropertyType, Scalar

_TEXT: Final = frozenset({Scalar.STRING})
_BOOL: Final = frozenset({Scalar.BOOL})
_NUMBERS: Final = frozenset(scalar for scalar in Scalar if scalar.is_numeric)
_TIMES: Final = frozenset(scalar for scalar in Scalar if scalar.is_temporal)

CONVERSIONS: Final[dict[Scalar, frozenset[Scalar]]] = {
    Scalar.STRING: _BOOL | _NUMBERS | _TIMES,
    Scalar.BOOL: _TEXT | _NUMBERS,
    Scalar.I32: _TEXT | _BOOL | _NUMBERS - {Scalar.I32},
    Scalar.I64: _TEXT | _BOOL | _NUMBERS - {Scalar.I64},
    Scalar.U32: _TEXT | _BOOL | _NUMBERS - {Scalar.U32},
    Scalar.U64: _TEXT | _BOOL | _NUMBERS - {Scalar.U64},
    Scalar.F32: _TEXT | _BOOL | _NUMBERS - {Scalar.F32},
    Scalar.F64: _TEXT | _BOOL | _NUMBERS - {Scalar.F64},
    Scalar.DATE: _TEXT | {Scalar.DATETIME},
    Scalar.DATETIME: _TEXT | {Scalar.DATE},
}
"""By its type, the types that a value converts to exactly, if it converts at all.

Neither numbers nor booleans convert to times or back: which instant a number means is a guess.
"""

TOTAL_CONVERSIONS: Final[dict[Scalar, frozenset[Scalar]]] = {
    Scalar.STRING: frozenset(),
    Scalar.BOOL: _TEXT | _NUMBERS,
    Scalar.I32: _TEXT | {Scalar.I64, Scalar.F64},
    Scalar.I64: _TEXT,
    Scalar.U32: _TEXT | {Scalar.I64, Scalar.U64, Scalar.F64},
    Scalar.U64: _TEXT,
    Scalar.F32: _TEXT | {Scalar.F64},
    Scalar.F64: _TEXT,
    Scalar.DATE: _TEXT | {Scalar.DATETIME},
    Scalar.DATETIME: _TEXT,
}
"""By its type, the types that every value converts to."""

WIDENINGS: Final = frozenset(
    {
        (Scalar.I32, Scalar.I64),
        (Scalar.U32, Scalar.U64),
        (Scalar.U32, Scalar.I64),
        (Scalar.F32, Scalar.F64),
        (Scalar.BOOL, Scalar.STRING),
        *((number, Scalar.STRING) for number in _NUMBERS),
    }
)
"""The total conversions, which are allowed without a request."""


class Retyping(Enum):
    """What a change of type does to the stored values."""

    NONE = auto()
    """The types are equal."""
    RELABEL = auto()
    """The stored values stay, and all are valid: enum to String, a wider or reordered enum."""
    RESTRICT = auto()
    """The stored values stay, and some may be invalid: String to enum, a narrower enum."""
    WIDEN = auto()
    """Every value is converted, and none can fail."""
    CONVERT = auto()
    """Every value is converted, and some may fail: only on request."""
    IMPOSSIBLE = auto()
    """There is no conversion."""

    @property
    def keeps_values(self) -> bool:
        """Whether the column stays as it is stored."""
        return self in (Retyping.NONE, Retyping.RELABEL, Retyping.RESTRICT)


def retyping(old: PropertyType, new: PropertyType) -> Retyping:
    """What has to happen to the values of a property of type `old` that becomes `new`.

    >>> retyping(Scalar.I32, Scalar.I64), retyping(Scalar.I64, Scalar.I32)
    (<Retyping.WIDEN: 4>, <Retyping.CONVERT: 5>)
    >>> retyping(EnumType(("a", "b")), EnumType(("b",)))
    <Retyping.RESTRICT: 3>
    """
    if old == new:
        return Retyping.NONE
    match old, new:
        case EnumType(before), EnumType(after):
            return Retyping.RELABEL if set(before) <= set(after) else Retyping.RESTRICT
        case EnumType(), Scalar.STRING:
            return Retyping.RELABEL
        case Scalar.STRING, EnumType():
            return Retyping.RESTRICT
        case _:
            return _converting(old, new)


def _converting(old: PropertyType, new: PropertyType) -> Retyping:
    source, target = stored_scalar(old), stored_scalar(new)
    if source is None or target is None or target not in CONVERSIONS[source]:
        return Retyping.IMPOSSIBLE
    # The text of a number is seldom a value of an enum, so that conversion may fail.
    always = (source, target) in WIDENINGS and not isinstance(new, EnumType)
    return Retyping.WIDEN if always else Retyping.CONVERT


def stored_scalar(type_: PropertyType) -> Scalar | None:
    """The scalar that values of a type are stored as: an enum is text; None for other types."""
    if isinstance(type_, EnumType):
        return Scalar.STRING
    return type_ if isinstance(type_, Scalar) else None


def keeps_distinctness(old: PropertyType, new: PropertyType) -> bool:
    """Whether values that differ still differ after the conversion.

    Conversions between numbers are exact. Different texts may denote one value, as `1` and `01` do.
    """
    if retyping(old, new).keeps_values:
        return True
    source, target = stored_scalar(old), stored_scalar(new)
    return source in _NUMBERS and target in _NUMBERS
