"""The Python reference: every public name with its signature and its docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import omnigraph
from omnigraph.graph import BranchList, Commits, Graph, Recoveries, Schema

_PARTS: Final = {
    "graph.branches": BranchList,
    "graph.commits": Commits,
    "graph.recoveries": Recoveries,
    "graph.schema": Schema,
}
"""What a graph has under names of its own."""

_SECTION: Final = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$", re.MULTILINE)
_ITEM: Final = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)
_BLANK: Final = "\n\n"


def body() -> Iterator[str]:
    """The page's lines, without its head."""
    yield "## Opening"
    for name in ("open", "init"):
        yield from _callable(f"omnigraph.{name}", getattr(omnigraph, name))
    yield from ("", "## A graph")
    yield from _members("graph", Graph)
    for name, kind in _PARTS.items():
        yield from ("", f"## `{name}`", "", *_prose(kind))
        yield from _members(name, kind)
    yield from ("", "## Results")
    for name in omnigraph.__all__:
        kind = getattr(omnigraph, name)
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            yield from _result(name, kind)
        elif inspect.isclass(kind) and kind is not Graph and not issubclass(kind, Exception):
            yield from ("", f"### `{name}`", "", *_prose(kind))
            yield from _members(name, kind, level=4)
    yield from ("", "Errors are in [errors](errors.md); `omnigraph.errors` has their classes.")


def _members(owner: str, kind: type, *, level: int = 3) -> Iterator[str]:
    for name, each in vars(kind).items():
        if name.startswith("_") or not inspect.getdoc(each):
            continue
        if isinstance(each, property):
            yield from ("", f"{'#' * level} `{owner}.{name}`", "", *_prose(each))
        elif inspect.isfunction(each):
            yield from _callable(f"{owner}.{name}", each, level=level)


def _callable(name: str, function: Callable[..., Any], *, level: int = 3) -> Iterator[str]:
    yield from (
        "",
        f"{'#' * level} `{name}`",
        "",
        "```text",
        *_signature(name, function),
        "```",
        "",
    )
    yield from _prose(function)


def _signature(name: str, function: Callable[..., Any]) -> Iterator[str]:
    found = inspect.signature(function)
    yield f"{name}("
    is_named = False
    for each in found.parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not is_named:
            is_named = True
            yield "    *,"
        default = "" if each.default is each.empty else f" = {each.default!r}"
        yield f"    {each.name}: {each.annotation}{default},"
    yield f") -> {found.return_annotation}"


def _result(name: str, kind: type) -> Iterator[str]:
    summary, sections = _parsed(kind)
    said = dict(sections.get("Attributes", ()))
    yield from ("", f"### `{name}`", "", *_paragraphs(summary), "")
    for each in dataclasses.fields(kind):
        meaning = f": {said[each.name]}" if each.name in said else ""
        yield f"- `{each.name}: {each.type}`{meaning}"
    for member, value in vars(kind).items():
        if isinstance(value, property) and not member.startswith("_"):
            yield f"- `{member}`: {' '.join(_parsed(value)[0].split())}"


def _prose(thing: object) -> Iterator[str]:
    """A docstring as Markdown: its text, then what its sections list."""
    summary, sections = _parsed(thing)
    yield from _paragraphs(summary)
    for title, items in sections.items():
        yield from ("", f"{title}:", "", *(f"- `{name}`: {said}" for name, said in items))


def _parsed(thing: object) -> tuple[str, dict[str, list[tuple[str, str]]]]:
    """A docstring's text, and by their titles the items of its sections."""
    parts = _SECTION.split(inspect.getdoc(thing) or "")
    sections = {
        title: [(name, " ".join(said.split())) for name, said in _ITEM.findall(listed.rstrip())]
        for title, listed in zip(parts[1::2], parts[2::2], strict=True)
    }
    return parts[0], sections


def _paragraphs(text: str) -> Iterator[str]:
    for place, each in enumerate(part for part in text.strip().split(_BLANK) if part.strip()):
        if place:
            yield ""
        yield from (["```python", *each.splitlines(), "```"] if ">>>" in each else [each])
