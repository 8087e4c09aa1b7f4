"""Applies schema changes to graphs, and verifies what holds of every one of them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import pytest

from omnigraph.graph import Graph
from omnigraph.integrity.violations import IntegrityError
from omnigraph.model.tables import TablePin

Rows: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By id, the properties of the rows of a type."""


def read_rows(graph: Graph, type_name: str, **at: Any) -> dict[str, dict[str, Any]]:
    """All rows of a type by id, as a query of nodes or of edges returns them."""
    type_ = graph.schema.show(**at).catalog.type_named(type_name)
    names = [property_.name for property_ in type_.properties]
    if type_.table_key.kind == "edge":
        rows = _read_table(graph, type_name, ["id", "src", "dst", *names], **at)
    else:
        returns = " ".join(f"$r.{name} as c{place}" for place, name in enumerate(["id", *names]))
        text = f"query all() {{ match {{ $r: {type_name} }} return {{ {returns} }} }}"
        columns = {f"c{place}": name for place, name in enumerate(["id", *names])}
        rows = [
            {columns[alias]: value for alias, value in row.items()}
            for row in graph.query(text, **at).rows()
        ]
    return {row.pop("id"): row for row in rows}


def _read_table(
    graph: Graph, type_name: str, columns: list[str], **at: Any
) -> list[dict[str, Any]]:
    """Rows of an edge type, whose own properties no query returns."""
    snapshot = graph.snapshot(**at)
    [pin] = [pin for key, pin in snapshot.pins.items() if key.type_name == type_name]
    rows = graph._store.tables.open_pin(pin).read(columns).to_pylist()
    return [dict(row) for row in rows]


def read_all(graph: Graph, **at: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """All rows of all types."""
    names = [type_.name for type_ in graph.schema.show(**at).catalog.types]
    return {name: read_rows(graph, name, **at) for name in names}


def apply_change(
    graph: Graph,
    schema: str,
    expected: Mapping[str, Rows],
    *,
    untouched: Collection[str] = (),
    branch: str = "main",
    engine: str = "local",
    **requests: Any,
) -> str:
    """Apply a change, verify what holds of every change, and return its commit.

    Args:
        expected: The rows of the types to look at afterwards.
        untouched: Types whose tables may not move.
        requests: What `schema.apply` takes beside these.
    """
    before = graph.snapshot(branch=branch)
    old_commit, old_pins = str(before.head.commit_id), pins_by_name(before.pins.values())
    old_rows, old_text = read_all(graph, commit=old_commit), graph.schema.show(branch=branch).text

    result = graph.schema.apply(schema, branch=branch, engine=engine, **requests)

    assert result.commit_id is not None
    for name, rows in expected.items():
        assert read_rows(graph, name, branch=branch) == rows, name
    new_pins = pins_by_name(graph.snapshot(branch=branch).pins.values())
    for name in untouched:
        assert new_pins[name] == old_pins[name], f"{name} is not touched"
    assert graph.schema.plan(schema, branch=branch).is_empty
    assert graph.schema.apply(schema, branch=branch, engine=engine).commit_id is None
    assert read_all(graph, commit=old_commit) == old_rows
    assert graph.schema.show(commit=old_commit).text == old_text
    require_sound(graph)
    return result.commit_id


def pins_by_name(pins: Iterable[TablePin]) -> dict[str, TablePin]:
    return {str(pin.key.type_name): pin for pin in pins}


def require_sound(graph: Graph) -> None:
    report = graph.check(engine="local")
    assert not report.findings, report.findings
    assert not report.notes, report.notes


Offence: TypeAlias = tuple[str, str, tuple[str, ...]]
"""The rule, the type and the properties of a violation."""


def refused_rows(graph: Graph, schema: str, **requests: Any) -> dict[Offence, dict[str, Any]]:
    """Apply a change that rows break: by rule, the ids and values. Nothing may have changed."""
    before = graph.snapshot()
    with pytest.raises(IntegrityError) as caught:
        graph.schema.apply(schema, **({"engine": "local"} | requests))
    after = graph.snapshot()
    assert (after.head.commit_id, after.pins) == (before.head.commit_id, before.pins)
    offences: dict[Offence, dict[str, Any]] = {}
    for violation in caught.value.violations:
        place = str(violation.rule), violation.type_name, violation.properties
        offences.setdefault(place, {})[str(violation.id)] = violation.value
    counts = {
        (str(breach.rule), breach.type_name, breach.properties): count
        for breach, count in caught.value.report.counts.items()
    }
    assert counts == {place: len(rows) for place, rows in offences.items()}
    return offences
