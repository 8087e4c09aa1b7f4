"""`omnigraph export` as a person meets it."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer, command

SCHEMA: Final = """
node Person { name: String @key  born: Date? }
node City { name: String @key }
edge LivesIn: Person -> City
"""
LINES: Final = [
    {"type": "City", "data": {"name": "Oslo"}},
    {"type": "Person", "data": {"name": "Ada", "born": "1815-12-10"}},
    {"type": "Person", "data": {"name": "Bob", "born": None}},
    {"edge": "LivesIn", "from": "Ada", "to": "Oslo", "id": "e1", "data": {}},
]

Run = Callable[..., Answer]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("graph")
    (place / "world.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in LINES))
    graph = omnigraph.init(place / "graph.omni", SCHEMA)
    graph.load(place / "world.jsonl", index=False)
    graph.branches.create("draft").load({"City": [{"name": "Rome"}]}, index=False)
    return graph.uri


def test_rows_go_to_standard_output_and_load_again_as_they_were(
    here: Run, store: str, tmp_path: Path
) -> None:
    told = here("export", "-", "--store", store)
    assert told.code == Exit.DONE
    assert "exported commit" in told.err
    rows = [json.loads(each) for each in told.out.splitlines()]
    assert [each.get("type", each.get("edge")) for each in rows] == [
        *("City", "Person", "Person", "LivesIn")
    ]
    (tmp_path / "again.jsonl").write_text(told.out)
    copy = omnigraph.init(tmp_path / "copy.omni", SCHEMA)
    copy.load(tmp_path / "again.jsonl", index=False)
    assert here("export", "-", "--store", copy.uri).out == told.out


def test_a_file_is_written_whole_and_told_of(here: Run, store: str, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl.zst"
    told = here("export", str(target), "--store", store, "--branch", "draft", "--json")
    assert (told.err, told.json["rows"]) == ("", {"City": 2, "Person": 2, "LivesIn": 1})
    assert (told.json["target"], told.json["format"]) == (str(target), "ndjson")
    assert target.exists()
    refused = here("export", str(target), "--store", store)
    assert (refused.code, refused.out) == (Exit.CONFLICT, "")
    assert "or replace it: --replace" in refused.err
    head = omnigraph.open(store, read_only=True).snapshot(branch="draft").head.commit_id
    assert told.json["commit_id"] == head


def test_tables_are_a_directory_with_a_file_for_each_type(
    here: Run, store: str, tmp_path: Path
) -> None:
    told = here("export", f"{tmp_path}/out", "--store", store, "--format", "parquet")
    assert [each.split() for each in told.out.splitlines()[1:]] == [
        *(["City", "1"], ["Person", "2"], ["LivesIn", "1"])
    ]
    assert pq.read_table(tmp_path / "out" / "Person.parquet").num_rows == 2
    few = ["--type", "Person", "--type", "City", "--quiet", "--replace"]
    told = here("export", f"{tmp_path}/out", "--store", store, "--format", "csv", *few)
    assert told.code == Exit.DONE, told.err
    with (tmp_path / "out" / "Person.csv").open() as file:
        assert [each["name"] for each in csv.DictReader(file)] == ["Ada", "Bob"]
    assert not (tmp_path / "out" / "LivesIn.csv").exists()


def test_the_past_can_be_exported(here: Run, store: str) -> None:
    first = omnigraph.open(store, read_only=True).commits.list()[-1].commit_id
    assert here("export", "-", "--store", store, "--commit", first).out == ""


def test_a_reader_that_stops_early_ends_the_export_quietly(store: str) -> None:
    program = command("export", "-", "--store", store)
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "Traceback" not in said
    assert "error" not in said
    assert process.returncode == Exit.DONE


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{tmp}/taken.jsonl"], Exit.CONFLICT, "taken.jsonl exists, and is not an earlier export"),
        (["{tmp}/taken.jsonl", "--replace"], Exit.CONFLICT, "choose another name, or move it"),
        (["{tmp}", "--format", "csv", "--replace"], Exit.CONFLICT, "other files"),
        (["{tmp}"], Exit.INVALID, "is a directory, and ndjson is one file"),
        (["{store}/out.jsonl"], Exit.INVALID, "lies in the directory of the graph itself"),
        (["{tmp}/no/out.jsonl"], Exit.INVALID, "no does not exist"),
        (["{tmp}/out.csv"], Exit.INVALID, "give a directory"),
        (["-", "--format", "parquet"], Exit.INVALID, "standard output is one"),
        (["-", "--engine", "spark"], Exit.INVALID, "standard output is one"),
        (["-", "--json"], Exit.USAGE, "--json"),
        (["{tmp}/out", "--format", "xml"], Exit.USAGE, "xml"),
        (["-", "--type", "Persn"], Exit.NOT_FOUND, "did you mean Person?"),
        (["-", "--branch", "mian"], Exit.NOT_FOUND, "did you mean main?"),
        (["-", "--commit", "0" * 26], Exit.NOT_FOUND, "0" * 26),
        (["-", "--commit", "0" * 26, "--branch", "main"], Exit.INVALID, "commit"),
        ([], Exit.USAGE, "TARGET"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run, store: str, tmp_path: Path, arguments: list[str], code: Exit, said: str
) -> None:
    (tmp_path / "taken.jsonl").write_text("mine")
    filled = [each.format(tmp=tmp_path, store=store) for each in arguments]
    refused = here("export", "--store", store, *filled)
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said in refused.said, refused.err
    assert [each.name for each in tmp_path.iterdir()] == ["taken.jsonl"]
    assert (tmp_path / "taken.jsonl").read_text() == "mine"
