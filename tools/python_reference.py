"""The Python reference: every public name with its signature and its docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import omnigraph
from omnigraph.accessors.algorithms import Algorithms
from omnigraph.accessors.branches import BranchList
from omnigraph.accessors.embeddings import Embeddings
from omnigraph.accessors.history import Commits
from omnigraph.accessors.indexes import IndexList
from omnigraph.accessors.proposals import ProposalList
from omnigraph.accessors.recoveries import Recoveries
from omnigraph.accessors.schema import Schema
from omnigraph.accessors.settings import GraphSettings
from omnigraph.accessors.stored_queries import StoredQueries
from omnigraph.accessors.streams import StreamList
from omnigraph.accessors.tags import TagList
from omnigraph.graph import Graph
from omnigraph.remote.graph import NOT_REMOTE, RemoteGraph

_PARTS: Final = {
    "graph.algorithms": Algorithms,
    "graph.branches": BranchList,
    "graph.commits": Commits,
    "graph.embeddings": Embeddings,
    "graph.indexes": IndexList,
    "graph.proposals": ProposalList,
    "graph.queries": StoredQueries,
    "graph.recoveries": Recoveries,
    "graph.settings": GraphSettings,
    "graph.schema": Schema,
    "graph.streams": StreamList,
    "graph.tags": TagList,
}
"""What a graph has under names of its own."""

_SPARK: Final = "`Frame` is a DataFrame of Spark, and `Session` its session."

_ERRORS: Final = (
    "Every error is an `omnigraph.OmnigraphError`, with `code`, `message`, `hint`, `details` and "
    "`retryable`; [errors](errors.md) has every code. `omnigraph.errors` has the same classes."
)

_SECTION: Final = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$", re.MULTILINE)
_ITEM: Final = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)
_BLANK: Final = "\n\n"


def body() -> Iterator[str]:
    """The page's lines, without its head."""
    yield from ("## Opening", "", "`omnigraph.__version__` is the release that is installed.")
    for name in ("open", "init", "import_original", "connect"):
        yield from _callable(f"omnigraph.{name}", getattr(omnigraph, name))
    yield from ("", "## A graph", "", _SPARK)
    yield from _members("graph", Graph)
    for name, kind in _PARTS.items():
        yield from ("", f"## `{name}`", "", *_prose(kind))
        yield from _members(name, kind)
    yield from ("", "## A remote graph", "", "### `RemoteGraph`", "", *_prose(RemoteGraph))
    yield from ("", "It has the methods above, but for these:", "")
    yield from (f"- `{name}`: {why}." for name, why in NOT_REMOTE.items())
    yield from ("", "## Schemas")
    yield from _callable("omnigraph.parse_schema", omnigraph.parse_schema)
    public = [(name, getattr(omnigraph, name)) for name in omnigraph.__all__]
    graphs = (Graph, RemoteGraph)
    kinds = [(name, each) for name, each in public if inspect.isclass(each) and each not in graphs]
    yield from ("", "## Results")
    for name, kind in kinds:
        if not issubclass(kind, Exception):
            yield from _result(name, kind)
    yield from ("", "## Errors", "", _ERRORS)
    for name, kind in kinds:
        if issubclass(kind, Exception):
            yield from _result(name, kind)


def _members(owner: str, kind: type) -> Iterator[str]:
    for name, each in vars(kind).items():
        if name.startswith("_") or not inspect.getdoc(each):
            continue
        if isinstance(each, property):
            yield from ("", f"### `{owner}.{name}`", "", *_prose(each))
        elif inspect.isfunction(each):
            yield from _callable(f"{owner}.{name}", each)


def _callable(name: str, function: Callable[..., Any]) -> Iterator[str]:
    yield from (
        "",
        f"### `{name}`",
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
    yield from ("", f"### `{name}`", "", *_paragraphs(_parsed(kind)[0]))
    listed = [*_fields(kind), *_listed_members(kind)]
    if listed:
        yield from ("", *listed)


def _fields(kind: type) -> Iterator[str]:
    if not dataclasses.is_dataclass(kind):
        return
    said = dict(_parsed(kind)[1].get("Attributes", ()))
    for each in dataclasses.fields(kind):
        if not each.name.startswith("_"):
            meaning = f": {said[each.name]}" if each.name in said else ""
            yield f"- `{each.name}: {each.type}`{meaning}"


def _listed_members(kind: type) -> Iterator[str]:
    for name, each in vars(kind).items():
        if name.startswith("_"):
            continue
        told = " ".join(_parsed(each)[0].split())
        if isinstance(each, property) and each.fget is not None:
            yield f"- `{name}: {inspect.signature(each.fget).return_annotation}`: {told}"
        elif inspect.isfunction(each):
            yield f"- `{_on_one_line(name, each)}`: {told}"


def _on_one_line(name: str, function: Callable[..., Any]) -> str:
    found = inspect.signature(function)
    given = [
        f"{each.name}: {each.annotation}"
        for each in found.parameters.values()
        if each.name != "self"
    ]
    return f"{name}({', '.join(given)}) -> {found.return_annotation}"


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
        yield from (["```text", *each.splitlines(), "```"] if ">>>" in each else [each])
