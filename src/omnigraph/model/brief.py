"""Brief representations: the `repr()` of a result fits a screen, however much it holds."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sized
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar

_SCREEN: Final = 1_500

Result = TypeVar("Result")


def brief(cls: type[Result]) -> type[Result]:
    """Give a dataclass a short `repr()`: no empty fields, and a few items of each collection."""
    cls.__repr__ = represent  # type: ignore[method-assign]
    return cls


def represent(value: object) -> str:
    """A value in at most a screen.

    >>> represent({"City": list(range(100))})
    "{'City': [0, 1, 2, ...]}"
    """
    text = _Brief().repr(value)
    return text if len(text) <= _SCREEN else f"{text[: _SCREEN - 4]}...)"


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxdict = self.maxset = self.maxfrozenset = 5
        self.maxlist = self.maxtuple = 3
        self.maxstring = self.maxother = 100

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, Enum):
            return repr(x.value)
        if isinstance(x, datetime):
            return x.isoformat()
        if is_dataclass(x) and not isinstance(x, type):
            return self._dataclass(x, level)
        if isinstance(x, Mapping):
            return self.repr_dict(dict(x), level)
        if _is_table(x):
            return f"<{x.num_rows:,} rows of {', '.join(x.column_names)}>"[: self.maxother]
        return super().repr1(x, level)

    def _dataclass(self, value: Any, level: int) -> str:
        name = type(value).__name__
        if level <= 0:
            return f"{name}(...)"
        shown = {field.name: getattr(value, field.name) for field in fields(value) if field.repr}
        parts = (
            f"{field.lstrip('_')}={self.repr1(held, level - 1)}"
            for field, held in shown.items()
            if held is not None and (_is_table(held) or not _is_empty(held))
        )
        return f"{name}({', '.join(parts)})"


def _is_table(value: object) -> bool:
    return hasattr(value, "num_rows") and hasattr(value, "column_names")


def _is_empty(value: object) -> bool:
    return isinstance(value, Sized) and not len(value)
