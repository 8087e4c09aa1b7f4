"""Options of indexes as a schema writes them: their names, and the words that each can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from omnigraph.choices import Analyzer, Metric, VectorKind
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.schema.catalog import IndexOptions, TextOptions, VectorOptions

_TEXT: Final[Mapping[str, type[Any]]] = {"analyzer": Analyzer, "positions": bool}
_VECTOR: Final[Mapping[str, type[Any]]] = {"kind": VectorKind, "metric": Metric}

OPTIONS: Final = {**_TEXT, **_VECTOR}
"""The choices that each option of an index has."""

OptionValue = str | int | float | bool


def name_fault(name: str, earlier: Iterable[str]) -> tuple[str, str] | None:
    """Why an index cannot have an option beside earlier ones, with a hint; None if it can."""
    if name not in OPTIONS:
        hint = did_you_mean(name, OPTIONS, otherwise=f"an index has {_list(OPTIONS, 'and')}")
        return f"an index has no option {name[:100]}", hint
    if name in earlier:
        return f"the {name} of an index is given twice", ""
    if any((name in _TEXT) is not (other in _TEXT) for other in earlier):
        hint = "analyzer and positions are for a String, kind and metric for a Vector"
        return f"an index has no {name} beside {_list(earlier, 'and')}", hint
    return None


def value_fault(name: str, value: OptionValue) -> tuple[str, str] | None:
    """Why an option of an index cannot be this, with a hint; None if it can.

    >>> value_fault("metric", "cos")
    ('an index has no metric "cos"', 'cosine, l2 or dot')
    """
    choices = OPTIONS[name]
    if issubclass(choices, StrEnum):
        words = tuple(map(str, choices))
        return None if value in words else (f"an index has no {name} {_show(value)}", _list(words))
    is_fine = isinstance(value, bool)
    return None if is_fine else (f"{name} cannot be {_show(value)}", "true or false")


def options_of(values: Mapping[str, Any]) -> IndexOptions | None:
    """The options that these values are, or None.

    >>> options_of({"analyzer": "simple"})
    TextOptions(analyzer=<Analyzer.SIMPLE: 'simple'>, positions=False)
    """
    if not values:
        return None
    typed = {name: OPTIONS[name](value) for name, value in values.items()}
    is_text = any(name in _TEXT for name in values)
    return TextOptions(**typed) if is_text else VectorOptions(**typed)


def _list(words: Iterable[str], last: str = "or") -> str:
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end


def _show(value: OptionValue) -> str:
    return f'"{value[:100]}"' if isinstance(value, str) else str(value).lower()[:100]
