"""A small graph of people, once with indexes and once without."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.contract.mutation.builders import Mutated, mutated

SCHEMA: Final = """
node Person { name: String @key  age: I32?  mail: String? @unique }
node City { name: String @key }
node Note { text: String? }
edge Knows: Person -> Person { since: Date?  weight: F64? }
edge LivesIn: Person -> City @card(0..1)
edge Likes: City -> Person { @key(src, dst) }
"""
ROWS: Final = {
    "Person": [
        {"name": "ada", "age": 36, "mail": "a@x"},
        {"name": "bob", "age": 40},
        {"name": "cy", "age": 36},
        {"name": "dee"},
    ],
    "City": [{"name": "Oslo"}, {"name": "Rome"}],
    "Knows": [
        {"id": "k1", "src": "ada", "dst": "bob", "weight": 0.5},
        {"id": "k2", "src": "ada", "dst": "bob", "since": "2024-01-01"},
        {"id": "k3", "src": "ada", "dst": "ada"},
        {"id": "k4", "src": "bob", "dst": "cy"},
        {"id": "k5", "src": "cy", "dst": "ada"},
    ],
    "LivesIn": [{"id": "l1", "src": "ada", "dst": "Oslo"}],
    "Likes": [{"src": "Oslo", "dst": "ada"}, {"src": "Oslo", "dst": "bob"}],
}

Make = Callable[..., Mutated]


@pytest.fixture(params=[False, True], ids=["scanned", "indexed"])
def people(tmp_path: Path, request: pytest.FixtureRequest) -> Mutated:
    """The people, whose rows are found by scans or by indexes."""
    return mutated(tmp_path / "graph", SCHEMA, ROWS, indexed=request.param)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a graph of any schema."""

    def made(schema: str, **rows: list[dict[str, object]]) -> Mutated:
        return mutated(tmp_path / "made", schema, rows)

    return made
