"""Dialects of CSV: how a file separates, quotes, names and encodes what it has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from omnigraph.errors import InvalidParameterError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.schema.catalog import Catalog

CsvOptions: TypeAlias = "str | Sequence[str] | Mapping[str, object]"
"""What a caller may give: texts such as `delimiter=|,null=NA` or `Person:header=name,age`, or the
same options by name."""

UTF8: Final = "utf-8"

_OF_TYPE: Final = re.compile(r"(?:(?P<type>[A-Z]\w*):)?(?P<options>.*)", re.DOTALL)
_COMMA: Final = re.compile(r",(?=[a-z_]+=)")
"""A comma between options: what follows is the name of the next one."""
_HINT: Final = "write --csv delimiter=|,null=NA, or csv={'delimiter': '|'} in Python"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How to read a CSV file.

    Attributes:
        quote: Encloses fields; empty where nothing does.
        escape: Stands before a quote within a quoted field; empty where a quote is doubled.
        header: The names of the columns, of a file whose first line does not have them.
        null: Fields that are null, beside empty ones; a quoted field never is.
        encoding: As Python names it.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    header: tuple[str, ...] = ()
    null: tuple[str, ...] = ()
    encoding: str = UTF8

    @property
    def is_utf8(self) -> bool:
        """Whether its text need not be decoded."""
        return self.encoding.lower().replace("_", "-") in (UTF8, "utf8")


@dataclass(frozen=True, slots=True)
class Dialects:
    """The dialects of a load's files: one for all, and those of some types."""

    default: CsvDialect = CsvDialect()
    by_type: Mapping[str, CsvDialect] = field(default_factory=dict)

    def of_type(self, name: str) -> CsvDialect:
        """The dialect of files with rows of a type."""
        return self.by_type.get(name, self.default)


def parse_dialects(options: CsvOptions | None, catalog: Catalog) -> Dialects:
    """The dialects that a caller describes; options of one type add to those of all."""
    values: dict[str | None, dict[str, object]] = {None: {}}
    for type_name, given in _by_type(options):
        if type_name is not None:
            catalog.type_named(type_name)
        values.setdefault(type_name, {}).update(given)
    default = replace(CsvDialect(), **_checked(values.pop(None)))
    by_type = {str(name): replace(default, **_checked(given)) for name, given in values.items()}
    return Dialects(default, by_type)


def _by_type(options: object) -> Iterator[tuple[str | None, Mapping[str, object]]]:
    if isinstance(options, Mapping):
        yield None, options
        return
    texts = [options] if isinstance(options, str) else options
    if texts is not None and not (
        isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
    ):
        message = f"options of CSV cannot be a {type(options).__name__}"
        raise InvalidParameterError(message, hint=_HINT, name="csv")
    for text in texts or ():
        match = _OF_TYPE.fullmatch(text)
        assert match is not None, "it matches any text"
        pairs = [option.partition("=") for option in _COMMA.split(match["options"])]
        if any(not equals for _, equals, _ in pairs):
            message = f"{text[:100]!r} is not a list of CSV options"
            raise InvalidParameterError(message, hint=_HINT, name="csv")
        yield match["type"], {name: value for name, _, value in pairs}


def _checked(given: Mapping[str, object]) -> dict[str, Any]:
    return {str(name): _check(str(name), value) for name, value in given.items()}


def _check(name: str, value: object) -> object:
    match name:
        case "delimiter":
            return _character(name, {"tab": "\t", r"\t": "\t"}.get(str(value), value))
        case "quote" | "escape":
            return value if value == "" else _character(name, value)
        case "header" | "null":
            names = tuple(value.split(",")) if isinstance(value, str) else value
            if isinstance(names, Sequence) and all(isinstance(text, str) for text in names):
                return tuple(names)
            raise _value_error(name, value, "texts, with commas between")
        case "encoding":
            return _encoding(name, value)
        case _:
            known = CsvDialect.__dataclass_fields__
            message = f"CSV has no option {name[:100]!r}"
            hint = did_you_mean(name, known, otherwise=f"use {', '.join(known)}")
            raise InvalidParameterError(message, hint=hint, name="csv")


def _character(name: str, value: object) -> str:
    if isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n\0":
        return value
    raise _value_error(name, value, "one character of ASCII, or \\t")


def _encoding(name: str, value: object) -> str:
    try:
        # Codecs that do not make text of bytes are refused, too.
        "".encode(str(value))
    except LookupError:
        wanted = "one that Python knows, such as latin-1"
        raise _value_error(name, value, wanted) from None
    return str(value)


def _value_error(name: str, value: object, wanted: str) -> InvalidParameterError:
    message = f"{name} of CSV cannot be {str(value)[:100]!r}: it is {wanted}"
    return InvalidParameterError(message, hint=_HINT, name="csv")
