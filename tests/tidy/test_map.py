"""The map: every function that the design page and the recipes name is where they say it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.sources import REPOSITORY

PACKAGE: Final = REPOSITORY / "src" / "omnigraph"
PAGES: Final = ("docs/design.md", "docs/contributing.md")
PLACE: Final = re.compile(r"`([a-z_]+(?:/[a-z_]+)*\.py): ([A-Za-z_.]+)`")
MODULE: Final = re.compile(r"`([a-z][a-z_]*/(?:[a-z_]+/|[a-z_]+\.py))`")


def defined_names(path: Path) -> Iterator[str]:
    """The functions and classes of a module, and their methods as `Class.method`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (
                f"{node.name}.{member.name}"
                for member in node.body
                if isinstance(member, ast.FunctionDef)
            )
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def wrong_places(text: str) -> list[str]:
    """The places that a page names and the package does not have."""
    wrong = [
        f"{module}: {name}"
        for module, name in PLACE.findall(text)
        if not (PACKAGE / module).is_file() or name not in set(defined_names(PACKAGE / module))
    ]
    return wrong + [
        name
        for name in MODULE.findall(text)
        if not any((root / name).exists() for root in (PACKAGE, REPOSITORY, PACKAGE / "integrity"))
    ]


@pytest.mark.parametrize("page", PAGES)
def test_the_map_names_what_exists(page):
    text = (REPOSITORY / page).read_text()

    assert PLACE.search(text), "the page has places to check"
    assert wrong_places(text) == []


def test_the_map_has_every_room():
    _, _, rooms = (REPOSITORY / "docs/design.md").read_text().partition("## Rooms")
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").is_file()}

    assert folders, "the package has rooms"
    assert sorted(name for name in folders if f"`{name}`" not in rooms) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`graph.py: Graph.load`", []),
        ("`graph.py: Graph.lode`", ["graph.py: Graph.lode"]),
        ("`graf.py: Graph.load`", ["graf.py: Graph.load"]),
        ("`recovery/owners.py` and `load/shaping/`", []),
        ("`recovery/owner.py` and `load/shape/`", ["recovery/owner.py", "load/shape/"]),
    ],
)
def test_a_wrong_place_is_found(text, wrong):
    assert wrong_places(text) == wrong
