"""Branches to merge: people of whom two branches changed some each, as files made once."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph import graph

SCHEMA: Final = "node Person { name: String @key  age: I64  score: F64  city: String }\n"
COLUMNS: Final = ("name", "age", "score", "city")
DRAFT: Final = "draft"

LEAVES_DRAFT: Final = 201
LEAVES_MAIN: Final = 202
"""The ages of people whom the branch deletes: a query of one line, for everyone."""

GONE: Final = "query gone($age: I64) { delete Person where age = $age }"

VECTOR_SCHEMA: Final = "node Page { name: String @key  title: String  embedding: Vector(%d) }\n"


@dataclass(frozen=True, slots=True)
class Size:
    """How many people there are; the draft changes a tenth of them, and main a hundredth.

    Of the rows that a branch changes, eight of ten are updated, one is deleted, and one is new. Of
    those that main updates, the draft updates half, in another property.
    """

    people: int

    @property
    def draft(self) -> int:
        return self.people // 10

    @property
    def main(self) -> int:
        return self.people // 100


class Changes:
    """The rows of a table, and what either branch makes of them."""

    def __init__(self, size: Size) -> None:
        self._size = size
        count = size.people
        random = np.random.default_rng(count)
        self._age = random.integers(0, 100, count)
        # Never whole: a peer would give that back as an integer.
        self._score = random.random(count).round(6) / 2 + 0.2
        self._city = random.integers(0, 1_000, count)
        number = np.arange(count)
        self._age[number % 100 == 5] = LEAVES_DRAFT
        self._age[number % 1_000 == 7] = LEAVES_MAIN

    @cached_property
    def base(self) -> pa.Table:
        return self._rows(np.arange(self._size.people))

    @property
    def draft(self) -> pa.Table:
        """Eight of a hundred people with another age, spread over the table, and new ones."""
        number = np.arange(self._size.people)
        old = self._rows(number[(number % 100 < 80) & (number % 10 == 0)], age=150)
        return pa.concat_tables([old, _new("d", self._size.draft // 10)])

    @property
    def main(self) -> pa.Table:
        """Eight of a thousand people who moved, half of them among those of the draft."""
        number = np.arange(self._size.people)
        place = number % 1_000
        moved = ((place % 100 == 10) & (place < 400)) | ((place % 100 == 11) & (place < 400))
        old = self._rows(number[moved], city="elsewhere")
        return pa.concat_tables([old, _new("m", self._size.main // 10)])

    def _rows(self, number: np.ndarray, *, age: int | None = None, city: str = "") -> pa.Table:
        return _table(
            "p",
            number,
            self._age[number] if age is None else np.full(len(number), age),
            self._score[number],
            [city] * len(number) if city else _cities(self._city[number]),
        )


def _new(letter: str, count: int) -> pa.Table:
    number = np.arange(count)
    return _table(letter, number, number % 100, number / 8 + 0.3, _cities(number % 1_000))


def _cities(number: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("city", pa.array(number).cast(pa.string()), " ")


def _table(letter: str, number: np.ndarray, age: object, score: object, city: object) -> pa.Table:
    digits = pc.utf8_lpad(pa.array(number).cast(pa.string()), 9, "0")
    names = pc.binary_join_element_wise(letter, digits, "")
    return pa.table([names, age, score, city], names=list(COLUMNS))


def files(size: Size, folder: Path) -> Path:
    """A folder with `base`, `draft` and `main`, each with a Parquet file of people."""
    place = folder / f"branches-{size.people}"
    if place.exists():
        return place
    made = Changes(size)
    scratch = place.with_name(f"{place.name}.{os.getpid()}")
    for name in ("base", "draft", "main"):
        (scratch / name).mkdir(parents=True)
        pq.write_table(getattr(made, name), scratch / name / "Person.parquet")
    scratch.rename(place)
    return place


def diverged(place: Path, made: Path) -> None:
    """A graph whose draft and main have both changed their people since they parted."""
    people = graph.init(place, SCHEMA)
    people.load(made / "base", engine="local")
    people.branches.create(DRAFT)
    for branch, age in ((DRAFT, LEAVES_DRAFT), ("main", LEAVES_MAIN)):
        people.load(made / branch, mode="merge", branch=branch, engine="local")
        people.mutate(GONE, {"age": age}, branch=branch)


def ahead(place: Path, made: Path, rows: pa.Table) -> None:
    """A graph whose draft has only added people."""
    people = graph.init(place, SCHEMA)
    people.load(made / "base", engine="local")
    people.branches.create(DRAFT)
    people.load({"Person": rows}, branch=DRAFT, engine="local")


def newcomers(count: int) -> pa.Table:
    """People whom nobody has yet."""
    return _new("d", count)


def with_vectors(place: Path, count: int, dimension: int) -> None:
    """A graph of pages that both branches have changed: the draft its vectors, main its titles."""
    pages = graph.init(place, VECTOR_SCHEMA % dimension)
    random = np.random.default_rng(count)

    def rows(title: str) -> dict[str, pa.Table]:
        numbers = random.random(count * dimension, np.float32)
        names = pa.array(f"page {number:09}" for number in range(count))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), dimension)
        columns = {"name": names, "title": [title] * count, "embedding": vectors}
        return {"Page": pa.table(columns)}

    base = rows("a title")
    pages.load(base, engine="local", index=False)
    pages.branches.create(DRAFT)
    pages.load(rows("a title"), mode="merge", branch=DRAFT, engine="local", index=False)
    pages.mutate('query edit() { update Page set { title: "another" } where title = "a title" }')
