"""A graph that has dropped values, and an oracle that looks for them in every file."""

from pathlib import Path
from typing import Final

import omnigraph
from omnigraph.graph import Graph
from omnigraph.maintenance.purge.results import PurgeResult
from tests.support.clocks import LaterClock

NEEDLE: Final = b"needle-7f3a"
"""A part of every value that is dropped, and of nothing else. Files hold short texts verbatim."""

BEFORE: Final = """
node Person { name: String @key  email: String? @index  age: I32? }
node Draft { title: String @key }
edge Knows: Person -> Person { remark: String? }
"""
AFTER: Final = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
HOURS: Final = 2 * 3600.0
"""Longer than the grace of a commit."""


def secret(of: str) -> str:
    """A value that is going to be dropped."""
    return f"{NEEDLE.decode()}-{of}"


def furnish_secrets(uri: str) -> Graph:
    """A graph with values to drop: in rows, in an index, in edges and in a whole type."""
    graph = omnigraph.init(uri, BEFORE)
    graph.settings.set("maintenance.optimize", "off")
    people = [{"name": name, "email": secret(name), "age": 30} for name in ("ada", "bob")]
    knows = [{"from": "ada", "to": "bob", "remark": secret("edge")}]
    graph.load({"Person": people, "Knows": knows, "Draft": [{"title": secret("draft")}]})
    graph.load({"Person": [{"name": "cy", "email": secret("cy")}]}, index=False)
    graph.load({"Person": [{"name": "ada", "email": secret("new"), "age": 31}]}, mode="merge")
    return graph


def later(uri: str, seconds: float = HOURS) -> Graph:
    """A handle of somebody who looks so many seconds later."""
    return omnigraph.open(uri, clock=LaterClock(seconds))


def purge_now(uri: str) -> PurgeResult:
    """Write again what has to be, and remove the rest as if two hours had passed."""
    omnigraph.open(uri).schema.purge(keep_commits=1)
    return later(uri).schema.purge(keep_commits=1)


def files_with_needles(uri: str) -> set[str]:
    """Every file of a graph, whatever it is for, that has a dropped value in it."""
    root = Path(uri)
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and NEEDLE in path.read_bytes()
    }
