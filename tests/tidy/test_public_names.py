"""Other packages are used by their public names alone: an upgrade may change all others."""

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.sources import PACKAGE, Source, calls, dotted_name, every_source

OWN: Final = {"omnigraph", "omnigraph_demo", "pyspark_omnigraph"}

INTERNAL: Final = ("lance.lance", "pyarrow.lib", "uvicorn.protocols")
"""Modules without an underscore that their packages do not document."""

DOCUMENTED: Final = {"os._exit"}

EXEMPT: Final = {
    # Names the classes of `describe_indices` for the type checker; Lance exports them nowhere else.
    "storage/indexes.py",
    # `DataFile._path`: the public `path` builds a class at each access, which takes 6.5 µs for each
    # file of each version (docs/substrate.md, Fragments).
    "storage/pairs.py",
    "storage/pieces.py",
}
"""Files that may name what is private; nothing may be added here."""


def is_private(name: str) -> bool:
    """Whether a part of a name begins with one underscore, and does not end with one."""
    return any(part.startswith("_") and not part.endswith("_") for part in name.split("."))


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a module has of other packages, and what they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(each.asname or each.name.partition(".")[0], each.name) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [
                (each.asname or each.name, f"{node.module}.{each.name}") for each in node.names
            ]
        else:
            continue
        yield from (pair for pair in names if pair[1].partition(".")[0] not in OWN)


def private_names(source: Source) -> list[str]:
    """The private names of other packages that a module uses."""
    foreign = dict(imported(source.tree))
    found = {name for name in foreign.values() if is_private(name) or name.startswith(INTERNAL)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            name = dotted_name(node)
            if name.partition(".")[0] in foreign and name not in DOCUMENTED:
                found.add(name)
    for function, call in calls(source.tree):
        if function in ("getattr", "hasattr", "setattr") and len(call.args) > 1:
            attribute = call.args[1]
            if isinstance(attribute, ast.Constant) and is_private(str(attribute.value)):
                found.add(f"{ast.unparse(call.args[0])}.{attribute.value!s}")
    return sorted(found)


def test_no_private_name_of_another_package_is_used():
    found = {each.path: private_names(each) for each in every_source() if each.path not in EXEMPT}

    assert {path: names for path, names in found.items() if names} == {}


def test_no_access_to_a_private_attribute_is_excused():
    # Ruff reports it anywhere. `graph.py` has functions beside its class.
    excused = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "noqa: SLF001" in path.read_text(encoding="utf-8")
    }

    assert excused - EXEMPT <= {"graph.py"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from typer._click import globals", ["typer._click.globals"]),
        ("import pyarrow._dataset", ["pyarrow._dataset"]),
        ("from uvicorn.protocols.http.h11_impl import X", ["uvicorn.protocols.http.h11_impl.X"]),
        ("import threading\nthreading._shutdown()", ["threading._shutdown"]),
        ("from pyspark import SparkContext\nSparkContext._gateway", ["SparkContext._gateway"]),
        ("getattr(dataset, '_ds')", ["dataset._ds"]),
        ("import os\nos._exit(0)", []),
        ("from lark import __version__", []),
        ("from omnigraph.graph import _x\nself._own", []),
        ("from enum import Enum\nEnum.A._value_", []),
    ],
)
def test_a_private_name_is_noticed(text, found):
    assert private_names(Source.parse("graph.py", text)) == found
