"""The data of the demo: people, companies and papers, the same for the same number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIRST: Final = (
    "Ada",
    "Bela",
    "Chen",
    "Dilara",
    "Émile",
    "Fatima",
    "Grace",
    "Hiro",
    "Inés",
    "Joon",
)
_LAST: Final = (
    "Adeyemi",
    "Brandt",
    "Costa",
    "Duarte",
    "Eriksen",
    "Farouk",
    "Hopper",
    "Ito",
    "Kovač",
)
_FIELDS: Final = ("biology", "chemistry", "computing", "mathematics", "physics")
_THINGS: Final = ("graphs", "proteins", "lattices", "galaxies", "neurons", "catalysts", "glaciers")
_WAYS: Final = ("sparse", "stable", "random", "quantum", "adaptive", "causal", "layered", "noisy")
_ASKED: Final = ("On", "Towards", "A survey of", "Limits of", "Learning", "Measuring")
_ENDS: Final = ("& Sons", "Labs", "Institute", "Works", "Group")
_ROLES: Final = ("researcher", "engineer", "director", None)
_WHYS: Final = ("builds_on", "disputes", "mentions")

_Texts = tuple[str | None, ...]

_ROWS_PER_CHUNK: Final = 100_000
_DAYS: Final = (-10_000, 12_000)
"""From 1942 to 2002: when people were born."""


@dataclass(frozen=True, slots=True)
class World:
    """Data with so many rows in all; each type keeps its share."""

    rows: int

    @property
    def people(self) -> int:
        """How many people there are."""
        return max(20, self.rows * 12 // 100)

    @property
    def companies(self) -> int:  # noqa: D102
        return max(2, self.rows // 200)

    @property
    def papers(self) -> int:  # noqa: D102
        return max(20, self.rows * 20 // 100)

    def write(self, path: Path) -> int:
        """Write a line for each row; return how many there are."""
        count = 0
        with path.open("wb") as file:
            for name, table in self.tables():
                file.write(lines(name, table))
                count += table.num_rows
        return count

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each type, some at a time."""
        random = np.random.default_rng(self.rows)
        # Not everyone works; the other edges are split between authors and citations.
        jobs = self.people * 3 // 4
        edges = max(10, self.rows - self.people - self.companies - self.papers - jobs)
        wrote = edges * 2 // 5
        makers = {
            "Person": (self.people, self._person),
            "Company": (self.companies, self._company),
            "Paper": (self.papers, self._paper),
            "Wrote": (wrote, self._wrote),
            "WorksAt": (jobs, self._works),
            "Cites": (edges - wrote, self._cites),
        }
        for name, (count, make) in makers.items():
            for start in range(0, count, _ROWS_PER_CHUNK):
                numbers = np.arange(start, min(count, start + _ROWS_PER_CHUNK))
                yield name, make(numbers, random)

    def _person(self, numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
        count = len(numbers)
        field = _any(_FIELDS, count, random)
        things, more = _any(_THINGS, count, random), _any(_THINGS, count, random)
        return pa.table(
            {
                "name": people(numbers),
                "born": _dates(random.integers(*_DAYS, count)),
                "field": field,
                "bio": _join("Works in ", field, " and writes about ", things, " and ", more),
            }
        )

    def _company(self, numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
        about = _join(_any(_WAYS, len(numbers), random), " ", _any(_THINGS, len(numbers), random))
        founded = pa.array(random.integers(1850, 2026, len(numbers)))
        return pa.table({"name": companies(numbers), "founded": founded, "about": about})

    def _paper(self, numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
        count = len(numbers)
        way, thing = _any(_WAYS, count, random), _any(_THINGS, count, random)
        other = _any(_THINGS, count, random)
        opening = _join("We study ", way, " ", thing, " where others saw ", other)
        return pa.table(
            {
                "doi": papers(numbers),
                "title": _join(_any(_ASKED, count, random), " ", way, " ", thing),
                "year": pa.array(random.integers(1960, 2026, count)),
                "abstract": _join(opening, ", and find that ", other, " come first."),
            }
        )

    def _wrote(self, numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
        # One author for every paper first, then further authors.
        written = np.where(
            numbers < self.papers, numbers, random.integers(0, self.papers, len(numbers))
        )
        authors = random.integers(0, self.people, len(numbers))
        return pa.table({"from": people(authors), "to": papers(written)})

    def _works(self, numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
        count = len(numbers)
        return pa.table(
            {
                "from": people(numbers),
                "to": companies(random.integers(0, self.companies, count)),
                "since": _dates(random.integers(14_000, 20_000, count)),
                "role": _any(_ROLES, count, random),
            }
        )

    def _cites(self, numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
        count = len(numbers)
        # A few papers are cited by many.
        cited = (self.papers * random.random(count) ** 4).astype(np.int64)
        return pa.table(
            {
                "from": papers(random.integers(0, self.papers, count)),
                "to": papers(cited),
                "why": _any(_WHYS, count, random),
            }
        )


def people(numbers: np.ndarray) -> pa.Array:
    """The names of the people with these numbers.

    >>> people(np.array([0, 11, 90])).to_pylist()
    ['Ada Adeyemi', 'Bela Costa', 'Ada Adeyemi 2']
    """
    names = len(_FIRST) * len(_LAST)
    first = _texts(_FIRST).take(pa.array(numbers % len(_FIRST)))
    last = _texts(_LAST).take(pa.array(numbers % len(_LAST)))
    again = np.where(numbers >= names, numbers // names + 1, 0)
    number = pa.array(again).cast(pa.utf8())
    suffix = pc.if_else(pa.array(again > 0), _join(" ", number), "")
    return _join(first, " ", last, suffix)


def companies(numbers: np.ndarray) -> pa.Array:
    """The names of the companies with these numbers."""
    last = _texts(_LAST).take(pa.array(numbers % len(_LAST)))
    end = _texts(_ENDS).take(pa.array(numbers % len(_ENDS)))
    return _join(last, " ", end, " ", pa.array(numbers + 1).cast(pa.utf8()))


def papers(numbers: np.ndarray) -> pa.Array:
    """The DOIs of the papers with these numbers."""
    return _join("10.5555/", pa.array(numbers + 1).cast(pa.utf8()))


def lines(type_name: str, table: pa.Table) -> pa.Buffer:
    r"""An envelope per row, each with its newline; no text of these data needs an escape.

    >>> lines("Wrote", pa.table({"from": ["a"], "to": ["b"]})).to_pybytes()
    b'{"edge":"Wrote","from":"a","to":"b","data":{}}\n'
    """
    columns: Mapping[str, pa.Array] = dict(zip(table.column_names, table.columns, strict=True))
    ends = [name for name in ("from", "to") if name in columns]
    parts: list[object] = [f'{{"{"edge" if ends else "type"}":"{type_name}"']
    for name in ends:
        parts += [f',"{name}":', _json(columns[name])]
    parts.append(',"data":{')
    for place, name in enumerate(key for key in columns if key not in ends):
        parts += [f'{"," if place else ""}"{name}":', _json(columns[name])]
    parts.append("}}\n")
    texts = _join(*parts).combine_chunks()
    # The texts are adjacent in their buffer, so its bytes are those of the file.
    _, offsets, data = texts.buffers()
    return data.slice(0, np.frombuffer(offsets, np.int32)[len(texts)])


def _json(values: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = values.cast(pa.utf8())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return texts
    return pc.coalesce(_join('"', texts, '"'), pa.scalar("null"))


def _join(*parts: object) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _any(texts: _Texts, count: int, random: np.random.Generator) -> pa.Array:
    return _texts(texts).take(pa.array(random.integers(0, len(texts), count)))


def _texts(texts: _Texts) -> pa.Array:
    return pa.array(texts, pa.utf8())


def _dates(days: np.ndarray) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())
