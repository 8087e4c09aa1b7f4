"""Diffs in print: the steps of the schema come first."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.changes.diffs import Batch, CommitChanges, GraphDiff
from omnigraph.changes.facts import batch_facts
from omnigraph.changes.records import TableChanges
from omnigraph.cli.commands.changes import _show
from omnigraph.cli.diffs import write_diff
from omnigraph.cli.formats import Format
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.steps import SchemaStep, StepKind

STEPS = (
    SchemaStep(StepKind.RENAME_PROPERTY, "node:P", "b", "a", "b"),
    SchemaStep(StepKind.DROP_PROPERTY, "node:P", "c", "c: I32"),
)
TYPE = parse_schema("node P { name: String @key }").type_named("P")
NOTHING = table_schema(TYPE).empty_table()
INSERTED = pa.Table.from_pylist([{"id": "x", "name": "x"}], table_schema(TYPE))
DIFF = GraphDiff(
    "c1", "c2", (TableChanges(TYPE, INSERTED, NOTHING, NOTHING, NOTHING),), schema=STEPS
)
FIRST = ["rename property P.b: a -> b", "drop property P.c: I32"]
KINDS = ["rename_property", "drop_property"]


def written(capsys, diff: GraphDiff, wanted: Format, *, rows: bool) -> Any:
    write_diff(diff, wanted, rows=rows)
    return capsys.readouterr().out


@pytest.mark.parametrize("rows", [False, True])
def test_a_table_follows_the_steps(capsys, rows):
    lines = written(capsys, DIFF, Format.TABLE, rows=rows).splitlines()
    assert lines[:2] == FIRST
    assert lines[2].split()[0] == "type"
    assert lines[3].startswith("P ")
    assert len(lines) == 4


def test_steps_alone_have_no_table_of_nothing(capsys):
    lines = written(capsys, replace(DIFF, tables=()), Format.TABLE, rows=False).splitlines()
    assert lines == FIRST


def test_json_has_the_steps_as_data(capsys):
    facts = json.loads(written(capsys, DIFF, Format.JSON, rows=False))
    assert [each["step"] for each in facts["schema"]] == KINDS
    assert list(facts) == ["before", "after", "schema", "changes"]
    steps_and_rows = json.loads(written(capsys, DIFF, Format.JSON, rows=True))
    assert [each.get("schema", {}).get("step") for each in steps_and_rows] == [*KINDS, None]
    assert steps_and_rows[-1]["id"] == "x"
    without = json.loads(written(capsys, replace(DIFF, schema=()), Format.JSON, rows=False))
    assert "schema" not in without


def test_csv_has_the_counts_alone(capsys):
    assert written(capsys, DIFF, Format.CSV, rows=False).splitlines() == [
        "type,inserted,updated,deleted",
        "P,1,0,0",
    ]


def test_a_commit_of_the_feed_has_its_steps(capsys):
    commit = Commit(
        CommitId("0" * 26),
        MAIN,
        2,
        None,
        None,
        None,
        datetime(2026, 1, 1, tzinfo=UTC),
        OperationKind.SCHEMA_APPLY,
        None,
        "digest",
    )
    batch = Batch((CommitChanges(commit, DIFF),), "0" * 26, is_newest=True)
    assert [
        each["step"] for each in batch_facts(batch, rows=False)["commits"][0]["schema"]
    ] == KINDS
    _show(batch, rows=False)
    assert capsys.readouterr().out.splitlines()[-1].endswith("schema 2 steps, P +1")
    _show(batch, rows=True)
    steps = capsys.readouterr().out.splitlines()[1:3]
    assert [line.split("schema", 1)[1].strip() for line in steps] == FIRST
