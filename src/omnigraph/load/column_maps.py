"""Column maps: which column of a file a property is taken from, where their names differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from omnigraph.errors import InvalidInputError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.load.shaping.envelopes import ENDS
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType

_MAPPED: Final = re.compile(r"(?P<path>.+?):(?P<pairs>[A-Za-z_]\w*=.*)", re.DOTALL)
_COMMA: Final = re.compile(r",(?=[A-Za-z_]\w*=)")
"""A comma between pairs: what follows is the next property. Columns may have any name."""


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Pairs of a property and the column it is taken from; other columns have their own names."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str, type_: SchemaType) -> tuple[str, Self]:
        """The path in a text, and the map behind it, if there is one.

        >>> from omnigraph.schema.catalog import NodeType, Property
        >>> from omnigraph.model.types import Scalar
        >>> person = NodeType("Person", (Property("name", Scalar.STRING),))
        >>> ColumnMap.parse("s3://lake/people.csv:name=full name", person)
        ('s3://lake/people.csv', ColumnMap(pairs=(('name', 'full name'),)))
        """
        match = _MAPPED.fullmatch(text)
        if match is None:
            return text, cls()
        split = (pair.partition("=") for pair in _COMMA.split(match["pairs"]))
        pairs = tuple((name, column) for name, _, column in split)
        takes = ["id", *(property_.name for property_ in type_.properties)]
        if isinstance(type_, EdgeType):
            takes += [*ENDS, *ENDPOINTS]
        for number, (name, column) in enumerate(pairs):
            if name not in takes:
                message = f"{type_.name} has no property {name[:100]}, which {text[:200]} maps"
                hint = _hint_at_order(name, column, takes)
                raise InvalidInputError(message, hint=hint or did_you_mean(name, takes) or _ORDER)
            if name in dict(pairs[:number]) or column in {other for _, other in pairs[:number]}:
                message = f"{text[:200]} maps {name}, or the column {column[:100]}, twice"
                raise InvalidInputError(message, hint="map each property and each column once")
        return match["path"], cls(pairs)

    def name_columns(self, columns: Sequence[str], file: str, *, drops: bool) -> dict[str, str]:
        """The columns of a file by the names of their properties, in order.

        Args:
            drops: Whether a column whose name the map gives to another one is left out.
        """
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            message = f'{file} has two columns "{twice[:100]}"'
            raise InvalidInputError(message, hint="rename one of them")
        for name, column in self.pairs:
            if column not in columns:
                message = f'{file} has no column "{column[:100]}", from which {name} is to be taken'
                hint = _hint_at_order(column, name, columns) or did_you_mean(column, columns)
                raise InvalidInputError(message, hint=hint or f"it has {_list(columns)}")
        names = {column: name for name, column in self.pairs}
        named: dict[str, str] = {}
        for column in columns:
            if column not in names and column in dict(self.pairs):
                if drops:
                    continue
                other = dict(self.pairs)[column]
                message = f'{file} has a column "{column}", and {column} is taken from "{other}"'
                raise InvalidInputError(message, hint="map both, or drop it: --ignore-unknown")
            named[names.get(column, column)] = column
        return named


_ORDER: Final = "write --map Type=path:property=column,property=column"


def _hint_at_order(name: str, other: str, known: Iterable[str]) -> str:
    """A hint for a pair that is the wrong way round."""
    return _ORDER if name not in known and other in known else ""


def _list(columns: Sequence[str]) -> str:
    shown = ", ".join(column[:50] for column in columns[:10])
    return shown if len(columns) <= 10 else f"{shown} and others"
