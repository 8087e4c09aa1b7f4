"""Changes of types on real graphs: every pair of types, with every change of nullability."""

import math
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from omnigraph.engine.spark import relations
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.plan import plan_by_hints
from tests.contract.evolution.conversion_cases import EVERY_TYPE, PAIRS, Pair
from tests.contract.evolution.worlds import Offence, apply_change, read_rows, refused_rows
from tests.support.graphs import add_rows, graph_with

NULLABILITY: Final = (("", ""), ("?", "?"), ("", "?"), ("?", ""))
"""Before and after the change; the last one has no nulls that break it."""

ACCEPTED: Final = [pair for pair in PAIRS if pair.values]
FAILING: Final = [pair for pair in PAIRS if pair.fails]
OTHER: Final = "node Other { name: String @key }"


Columns: TypeAlias = "list[tuple[str, Pair, tuple[str, str]]]"
"""The properties of a type: the name, the types and the nullability of each."""


def type_name(before: str) -> str:
    return "Of" + "".join(letter for letter in before.title() if letter.isalnum())


def columns(pairs: list[Pair]) -> Columns:
    """A property for each pair and each nullability."""
    both = [(pair, marks) for pair in pairs for marks in NULLABILITY]
    return [(f"p{number}", pair, marks) for number, (pair, marks) in enumerate(both)]


def by_type(pairs: list[Pair]) -> dict[str, Columns]:
    """A type of the schema for each type that values are converted from."""
    names = dict.fromkeys(pair.before for pair in pairs)
    return {
        type_name(before): columns([pair for pair in pairs if pair.before == before])
        for before in names
    }


def declare(tables: dict[str, Columns], *, after: bool) -> str:
    types = [OTHER]
    for name, members in tables.items():
        body = " ".join(
            f"{column}: {pair.after}{marks[1]}" if after else f"{column}: {pair.before}{marks[0]}"
            for column, pair, marks in members
        )
        types.append(f"node {name} {{ row: I32 @key  {body} }}")
    return "\n".join(types)


def place(values: list[Any], row: int, marks: tuple[str, str]) -> Any:
    """The value of a row: each in turn, and a null where one is allowed before and after."""
    if row == 0 and marks == ("?", "?"):
        return None
    return values[row % len(values)]


def rows_of(members: Columns, *, after: bool) -> list[dict[str, Any]]:
    return [
        {"row": row}
        | {
            column: place(list(pair.values.values() if after else pair.values), row, marks)
            for column, pair, marks in members
        }
        for row in range(4)
    ]


def requests(tables: dict[str, Columns]) -> list[str]:
    return [
        f"{name}.{column}"
        for name, members in tables.items()
        for column, pair, _ in members
        if pair.requested
    ]


def convert(root: Path, tables: dict[str, Columns], engine: str) -> None:
    """Change the types of all columns of tables with two fragments, and verify the values."""
    rows = {name: rows_of(members, after=False) for name, members in tables.items()}
    first = {name: values[:3] for name, values in rows.items()}
    rest = {name: values[3:] for name, values in rows.items()}
    old, new = (declare(tables, after=after) for after in (False, True))
    graph = graph_with(root / "graph", old, first | {"Other": [{"name": "x"}]})
    add_rows(graph, rest)
    expected = {
        name: {str(row["row"]): row for row in rows_of(members, after=True)}
        for name, members in tables.items()
    }
    apply_change(graph, new, expected, untouched=["Other"], convert=requests(tables), engine=engine)


def test_every_pair_of_types_converts_its_values_whatever_happens_to_nulls(tmp_path):
    convert(tmp_path, by_type(ACCEPTED), "local")


@pytest.mark.usefixtures("spark")
def test_spark_converts_every_pair_to_the_same_values(tmp_path, monkeypatch):
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    # All in one table, since each is a job.
    convert(tmp_path, {"All": columns(ACCEPTED)}, "spark")


def failing_rows(members: Columns) -> list[dict[str, Any]]:
    """The failing values of each column in its first rows, then nulls or good values."""
    total = max(len(pair.fails) for _, pair, _ in members) + 1
    rows = []
    for row in range(total):
        values: dict[str, Any] = {"row": row}
        for column, pair, marks in members:
            if row < len(pair.fails):
                values[column] = pair.fails[row]
            elif marks[0]:
                values[column] = None
            else:
                values[column] = next(iter(pair.values), pair.fails[0])
        rows.append(values)
    return rows


def expected_offences(name: str, members: Columns) -> dict[Offence, dict[str, Any]]:
    """What is wrong with `failing_rows`, by the table of pairs."""
    rows = failing_rows(members)
    offences: dict[Offence, dict[str, Any]] = {}
    for column, pair, marks in members:
        offences["type", name, (column,)] = {
            str(row["row"]): row[column] for row in rows if row[column] in pair.fails
        }
        missing = {str(row["row"]): None for row in rows if row[column] is None}
        if marks == ("?", ""):
            offences["required", name, (column,)] = missing
    return offences


# A text that is no value of an enum breaks the rule of the enum, whatever it is made of.
FAILING_TYPES: Final = [pair for pair in FAILING if "enum" not in pair.after]


@pytest.mark.parametrize("before", list(dict.fromkeys(pair.before for pair in FAILING_TYPES)))
def test_values_that_do_not_convert_are_listed_with_the_nulls_that_are_not_allowed(
    tmp_path, before
):
    tables = by_type([pair for pair in FAILING_TYPES if pair.before == before])
    [(name, members)] = tables.items()
    rows = {name: failing_rows(members)}
    graph = graph_with(tmp_path / "graph", declare(tables, after=False), rows)
    offences = refused_rows(graph, declare(tables, after=True), convert=requests(tables))
    assert offences.keys() == expected_offences(name, members).keys()
    for offence, values in expected_offences(name, members).items():
        assert list(map(comparable, offences[offence].items())) == list(
            map(comparable, values.items())
        ), offence


def comparable(item: tuple[str, Any]) -> tuple[str, Any]:
    """Not a number as a text, since it differs from itself."""
    row_id, value = item
    return row_id, str(value) if isinstance(value, float) else value


def test_texts_that_are_no_values_of_an_enum_are_listed(tmp_path):
    tables = by_type([pair for pair in FAILING if "enum" in pair.after])
    for members in tables.values():
        # Nulls are looked for before: a change that breaks both rules reports those alone.
        members[:] = [member for member in members if member[2] != ("?", "")]
    rows = {name: failing_rows(members) for name, members in tables.items()}
    graph = graph_with(tmp_path / "graph", declare(tables, after=False), rows)
    offences = refused_rows(graph, declare(tables, after=True), convert=requests(tables))
    assert {offence: set(ids) for offence, ids in offences.items()} == {
        ("enum", name, (column,)): {
            str(row["row"]) for row in rows[name] if row[column] in pair.fails
        }
        for name, members in tables.items()
        for column, pair, _ in members
    }


def test_exactly_the_pairs_of_the_table_are_accepted_while_there_are_rows():
    accepted = {(pair.before, pair.after): pair.requested for pair in PAIRS}
    assert len(accepted) == len(PAIRS), "a pair stands there once"
    for before in EVERY_TYPE:
        for after in EVERY_TYPE:
            old, new = (parse_schema(f"node T {{ v: {type_} }}") for type_ in (before, after))
            counts = {type_.table_key: 3 for type_ in old.types}
            unrequested = plan_by_hints(old, new, row_counts=counts)
            requested = plan_by_hints(old, new, row_counts=counts, conversions=[("T", "v")])
            if before == after:
                assert unrequested.is_empty
            elif (before, after) in accepted:
                assert bool(unrequested.refusals) == accepted[before, after], (before, after)
                assert not requested.refusals
            else:
                assert [step.to_json()["code"] for step in requested.refusals] == ["OG-DS-04"]


SAMPLES: Final[dict[str, Any]] = {
    "String": "text", "Bool": True, "I32": -3, "I64": 2**40, "U32": 2**32 - 1, "U64": 2**64 - 1,
    "F32": 1.5, "F64": math.inf, "Date": "2024-02-29", "DateTime": "2024-02-29T12:30:00+00:00",
    "enum(red, green)": "red", "enum(1, 2)": "2", "[I32]": [1, 2], "[String]": ["a"],
    "Vector(2)": [0.5, 1.0], "Blob": b"bytes",
}  # fmt: skip


def test_a_type_without_rows_takes_every_type_and_then_rows_of_it(tmp_path):
    pairs = [(one, other) for one in EVERY_TYPE for other in EVERY_TYPE if one != other]
    marks = [NULLABILITY[number % 4] for number in range(len(pairs))]
    names = [f"p{number}" for number in range(len(pairs))]
    old, new = (
        "node T { row: I32 @key "
        + " ".join(
            f"{name}: {pair[side]}{mark[side]}"
            for name, pair, mark in zip(names, pairs, marks, strict=True)
        )
        + "}"
        for side in (0, 1)
    )
    graph = graph_with(tmp_path / "graph", f"{OTHER} {old}", {"Other": [{"name": "x"}]})
    apply_change(graph, f"{OTHER} {new}", {"T": {}}, untouched=["Other"])

    row = {"row": 1} | {name: SAMPLES[pair[1]] for name, pair in zip(names, pairs, strict=True)}
    add_rows(graph, {"T": [row]})
    read = read_rows(graph, "T")["1"]
    for name, (_, after) in zip(names, pairs, strict=True):
        if "Date" not in after:
            assert read[name] == SAMPLES[after], after
