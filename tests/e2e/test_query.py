"""`omnigraph query` as a person meets it: what it prints, what it refuses, what it leaves alone."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from omnigraph import graph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer, command, omnigraph
from tests.support.graphs import add_rows, graph_with

SCHEMA: Final = """
node Thing {
  name: String @key
  note: String?
  small: I32?
  big: I64?
  huge: U64?
  narrow: F32?
  wide: F64?
  yes: Bool?
  day: Date?
  at: DateTime?
  tags: [String]?
  numbers: [F64]?
  vector: Vector(2)?
  photo: Blob?
}
node Number { n: I64 @key }
"""
FULL: Final = {
    "name": "a",
    "note": 'say "hi",\nthen go',
    "small": -1,
    "big": 2**63 - 1,
    "huge": 2**64 - 1,
    "narrow": 0.1,
    "wide": float("nan"),
    "yes": True,
    "day": "2024-02-29",
    "at": "2024-02-29T12:00:00.5+00:00",
    "tags": ["x", "y z"],
    "numbers": [1.5, float("inf")],
    "vector": [0.5, 0.1],
    "photo": b"\x00\xff",
}
EMPTY: Final = {"name": "b", "note": ""}
COLUMNS: Final = tuple(FULL)
EVERYTHING: Final = (
    "query all() { match { $t: Thing } return { "
    + " ".join(f"$t.{name} as {name}" for name in COLUMNS)
    + " } }"
)
NAMES: Final = "query names() { match { $t: Thing } return { $t.name } }"
MANY: Final = 20_000

Run = Callable[..., Answer]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("query") / "graph.omni")
    numbers = pa.table(
        {"id": [str(n) for n in range(MANY)], "n": pa.array(range(MANY), pa.int64())},
        schema=pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                pa.field("n", pa.int64(), nullable=False),
            ]
        ),
    )
    return graph_with(where, SCHEMA, {"Thing": [FULL, EMPTY], "Number": numbers}).uri


def test_rows_are_a_table_by_default(here: Run, store: str) -> None:
    asked = "query q() { match { $t: Thing } return { $t.name $t.note $t.yes $t.tags } }"
    told = here("query", "--store", store, "-e", asked)
    assert told.code == Exit.DONE
    assert told.err == ""
    assert told.out.splitlines() == [
        "t.name  t.note              t.yes  t.tags",
        'a       say "hi",\\nthen go  true   ["x", "y z"]',
        "b                           null   null",
    ]


def test_json_keeps_every_value(here: Run, store: str) -> None:
    told = here("query", "--store", store, "-e", EVERYTHING, "--format", "json")
    assert told.out.splitlines()[0] == "["
    full, empty = told.json
    assert full == {
        **FULL,
        "wide": "NaN",
        "at": "2024-02-29T12:00:00.500000Z",
        "numbers": [1.5, "Infinity"],
        "photo": "AP8=",
    }
    assert empty == {**dict.fromkeys(COLUMNS), **EMPTY}
    assert here("query", "--store", store, "-e", EVERYTHING, "--json").out == told.out


def test_jsonl_is_one_row_a_line(here: Run, store: str) -> None:
    told = here("query", "--store", store, "-e", EVERYTHING, "--format", "jsonl")
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert [each["name"] for each in rows] == ["a", "b"]
    assert rows == here("query", "--store", store, "-e", EVERYTHING, "--json").json


def test_csv_tells_null_command(here: Run, store: str) -> None:
    told = here("query", "--store", store, "-e", EVERYTHING, "--format", "csv")
    assert told.out.endswith('b,"",,,,,,,,,,,,\r\n')
    header, full, _ = csv.reader(io.StringIO(told.out, newline=""))
    assert header == list(COLUMNS)
    read = dict(zip(header, full, strict=True))
    assert read["note"] == FULL["note"]
    assert read["huge"] == "18446744073709551615"
    assert (read["narrow"], read["wide"], read["yes"]) == ("0.1", "NaN", "true")
    assert (read["day"], read["at"]) == ("2024-02-29", "2024-02-29T12:00:00.500000Z")
    assert json.loads(read["tags"]) == FULL["tags"]
    assert read["photo"] == "AP8="


def test_arrow_is_a_stream_of_batches(store: str) -> None:
    asked = ["query", "--store", store, "-e", EVERYTHING, "--format", "arrow"]
    told = omnigraph(*asked)
    table = pa.ipc.open_stream(told.data).read_all()
    assert table.column_names == list(COLUMNS)
    assert table.schema.field("huge").type == pa.uint64()
    assert table["day"].to_pylist() == [date(2024, 2, 29), None]
    assert told.err == ""


@pytest.mark.parametrize(
    ("format_", "empty"),
    [("table", "t.name\n"), ("json", "[]\n"), ("jsonl", ""), ("csv", "t.name\r\n")],
)
def test_no_rows_are_an_answer_too(here: Run, store: str, format_: str, empty: str) -> None:
    asked = 'query q() { match { $t: Thing {name: "c"} } return { $t.name } }'
    told = here("query", "--store", store, "-e", asked, "--format", format_)
    assert (told.code, told.out, told.err) == (Exit.DONE, empty, "")


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv"])
def test_a_large_answer_is_whole_and_in_order(here: Run, store: str, format_: str) -> None:
    asked = "query q() { match { $x: Number } return { $x.n as n } order { $x.n } }"
    told = here("query", "--store", store, "-e", asked, "--format", format_)
    found = [int(n) for n in "".join(c if c.isdigit() else " " for c in told.out).split()]
    assert found == list(range(MANY))


ECHO: Final = """
query echo($text: String, $small: I32, $big: U64, $wide: F64, $yes: Bool, $day: Date, $at: DateTime,
           $tags: [String], $vector: Vector(2), $photo: Blob) {
  match { $t: Thing {name: "a"} }
  return { $text as text $small as small $big as big $wide as wide $yes as yes $day as day
           $at as at $tags as tags $vector as vector $photo as photo }
}
"""


def test_a_pair_is_read_as_its_parameter_is_declared(here: Run, store: str) -> None:
    pairs = {
        "text": "12",
        "small": "12",
        "big": "18446744073709551615",
        "wide": "1e3",
        "yes": "true",
        "day": "2024-02-29",
        "at": "2024-02-29T12:00:00Z",
        "tags": '["a=b"]',
        "vector": "[1, 2.5]",
        "photo": "AP8=",
    }
    given = [each for name, value in pairs.items() for each in ("--param", f"{name}={value}")]
    [row] = here("query", "--store", store, "-e", ECHO, *given, "--json").json
    assert row == {
        **pairs,
        "small": 12,
        "big": 2**64 - 1,
        "wide": 1000.0,
        "yes": True,
        "tags": ["a=b"],
        "vector": [1.0, 2.5],
    }


def test_parameters_come_as_json_and_as_pairs_together(here: Run, store: str) -> None:
    asked = (
        "query q($a: String, $n: I32) { match { $t: Thing {name: $a} $t.small < $n } "
        "return { $t.name } }"
    )
    told = here(
        "query", "--store", store, "-e", asked, "--params", '{"a": "a"}', "-p", "n=5", "--json"
    )
    assert told.json == [{"t.name": "a"}]


def test_a_pair_may_hold_an_equals_sign(here: Run, store: str) -> None:
    asked = "query q($a: String) { match { $t: Thing {name: $a} } return { $t.name } }"
    told = here("query", "--store", store, "-e", asked, "--param", "a=b=c", "--json")
    assert told.json == []


def test_a_query_is_read_from_a_file_with_or_without_a_mark(
    here: Run, store: str, tmp_path: Path
) -> None:
    path = tmp_path / "names.gq"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + NAMES.encode())
        told = here("query", "--store", store, "--query", str(path), "--format", "jsonl")
        assert told.out == '{"t.name": "a"}\n{"t.name": "b"}\n'


def test_a_query_is_read_from_standard_input(store: str) -> None:
    told = omnigraph("query", "--store", store, "--query", "-", "--json", given=NAMES.encode())
    assert [each["t.name"] for each in told.json] == ["a", "b"]
    refused = omnigraph("query", "--store", store, "--query", "-", given=b"query \xff")
    assert refused.code == Exit.INVALID
    assert "standard input is not UTF-8" in refused.err


def test_one_of_several_queries_is_named(here: Run, store: str, tmp_path: Path) -> None:
    path = tmp_path / "two.gq"
    path.write_text(f"{NAMES}\n{EVERYTHING}")
    told = here("query", "names", "--store", store, "--query", str(path), "--json")
    assert [list(each) for each in told.json] == [["t.name"], ["t.name"]]


def test_the_past_can_be_asked(here: Run, tmp_path: Path) -> None:
    made = graph_with(tmp_path / "past.omni", SCHEMA, {"Thing": [EMPTY]})
    before = made.snapshot()
    add_rows(made, {"Thing": [FULL]})

    def count(*place: str) -> int:
        return len(here("query", "--store", made.uri, "-e", NAMES, "--json", *place).json)

    assert count() == count("--branch", "main") == 2
    assert count("--commit", before.head.commit_id) == 1
    assert count("--version", str(before.manifest_version)) == 1
    first = made.commits.list()[-1]
    assert count("--commit", first.commit_id) == 0


def test_explain_shows_the_plan_and_reads_no_row(here: Run, store: str) -> None:
    told = here("query", "--store", store, "-e", NAMES, "--explain")
    assert told.out.startswith("engine: local (tables of ")
    assert "node:Thing (id, name)" in told.out
    facts = here("query", "--store", store, "-e", NAMES, "--explain", "--json").json
    assert facts["engine"] == "local"
    assert facts["reads"] == {"r0": "node:Thing (id, name)"}


def test_verbose_says_what_ran_and_data_stays_alone(here: Run, store: str) -> None:
    told = here("query", "--store", store, "-e", NAMES, "--format", "jsonl", "-v")
    assert told.out == '{"t.name": "a"}\n{"t.name": "b"}\n'
    assert told.err.startswith("2 rows at commit 0")
    assert "engine: local (tables of " in told.err


def test_a_misspelt_type_is_shown_with_a_caret_and_the_nearest(
    here: Run, store: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.gq"
    path.write_text("query q() {\n  match { $t: Thng }\n  return { $t.name }\n}\n")
    refused = here("query", "--store", store, "--query", str(path))
    assert refused.code == Exit.INVALID
    assert refused.out == ""
    assert refused.err.splitlines() == [
        f"error[invalid_input]: {path} has 1 error",
        "",
        "error[T1]: the schema has no type Thng",
        f" --> {path}:2:15",
        "  |",
        "2 |   match { $t: Thng }",
        "  |               ^^^^ did you mean Thing?",
    ]
    told = json.loads(here("query", "--store", store, "--query", str(path), "--json").err)
    assert told["details"]["source"] == str(path)
    [only] = told["details"]["diagnostics"]
    assert (only["code"], only["line"], only["column"]) == ("T1", 2, 15)


ONE: Final = "query one($n: I32) { match { $t: Thing $t.small = $n } return { $t.name } }"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-e", ONE], Exit.INVALID, "$n: I32 is missing"),
        (["-e", ONE, "--params", "{n: 1}"], Exit.INVALID, "--params is not JSON"),
        (["-e", ONE, "--params", ""], Exit.INVALID, "--params is not JSON"),
        (["-e", ONE, "--params", "[" * 100_000], Exit.INVALID, "--params is not JSON"),
        (["-e", ONE, "--params", '{"n": NaN}'], Exit.INVALID, "NaN"),
        (["-e", ONE, "--params", "[1]"], Exit.INVALID, "not an object"),
        (["-e", ONE, "--params", '{"n": 1, "n": 2}'], Exit.INVALID, "given twice"),
        (["-e", ONE, "--params", '{"n": 1}', "-p", "n=1"], Exit.INVALID, "given twice"),
        (["-e", ONE, "--params", '{"n": "1"}'], Exit.INVALID, "1 is not of type I32"),
        (["-e", ONE, "--params", '{"$n": 1}'], Exit.INVALID, "did you mean n?"),
        (["-e", ONE, "-p", "n=one"], Exit.INVALID, "one is not of type I32"),
        (["-e", ONE, "-p", "n"], Exit.INVALID, "'n' is not a parameter"),
        (["-e", ONE, "-p", "m=1", "-p", "n=1"], Exit.INVALID, "$m: the query has no such"),
        (["-e", f"{ONE} {NAMES}"], Exit.INVALID, "name one of them: one, names"),
        (["nome", "-e", ONE], Exit.INVALID, "the text has no query"),
        (["-e", ""], Exit.INVALID, "no query"),
        (["-e", "query"], Exit.INVALID, "Q000"),
        (["-e", "query q() { insert Number { n: 1 } }"], Exit.INVALID, "changes the graph"),
        (["-e", NAMES, "--query", "{tmp}/q.gq"], Exit.USAGE, "either by --query FILE or by -e"),
        ([], Exit.USAGE, "either by --query FILE or by -e"),
        (["--query", "{tmp}/none.gq"], Exit.NOT_FOUND, "none.gq"),
        (["--query", "{tmp}"], Exit.INVALID, "cannot be read"),
        (["--query", "{tmp}/latin.gq"], Exit.INVALID, "not UTF-8: line 2"),
        (["--query", "{tmp}/empty.gq"], Exit.INVALID, "no query"),
        (["--query", "a\0b"], Exit.INVALID, "cannot be read"),
        (["-e", NAMES, "--format", "xml"], Exit.USAGE, "xml"),
        (["-e", NAMES, "--engine", "steam"], Exit.USAGE, "steam"),
        (["-e", NAMES, "--format", "csv", "--json"], Exit.USAGE, "--json cannot be used with"),
        (["-e", NAMES, "--format", "csv", "--explain"], Exit.USAGE, "no rows to print"),
        (["-e", NAMES, "--branch", "mian"], Exit.NOT_FOUND, "main?"),
        (["-e", NAMES, "--branch", "main", "--commit", "0" * 26], Exit.INVALID, "commit"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run, store: str, tmp_path: Path, arguments: list[str], code: Exit, said: str
) -> None:
    (tmp_path / "q.gq").write_text(NAMES)
    (tmp_path / "latin.gq").write_bytes(b"// first\n// caf\xe9\n")
    (tmp_path / "empty.gq").write_bytes(b"")
    filled = [each.replace("{tmp}", str(tmp_path)) for each in arguments]
    refused = here("query", "--store", store, *filled)
    assert refused.code == code, refused.err
    assert said in refused.said, refused.err
    assert refused.out == ""


def started(program: list[str], stdout: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(program, stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "arrow"])
def test_a_reader_that_stops_early_ends_it_quietly(store: str, format_: str) -> None:
    asked = "query q() { match { $x: Number } return { $x.n } }"
    arguments = ["query", "--store", store, "-e", asked, "--format", format_]
    with started(command(*arguments), subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.read(1)
        run.stdout.close()
        assert (run.wait(60), run.stderr.read()) == (Exit.DONE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["query", "-e", NAMES, "--json"], ["snapshot", "--json"]])
def test_output_that_cannot_be_written_is_an_error(store: str, arguments: list[str]) -> None:
    with (
        Path("/dev/full").open("wb") as full,
        started(command(*arguments, "--store", store), full) as run,
    ):
        assert run.stderr is not None
        code, said = run.wait(60), run.stderr.read().decode()
    assert code == Exit.FAILED
    assert "standard output cannot be written: No space left on device" in said
    assert "Exception ignored" not in said


def test_output_that_is_closed_is_an_error(store: str) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh"]
    program = command("query", "--store", store, "-e", NAMES)
    run = subprocess.run(
        [*closed, *program], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == Exit.FAILED
    assert "standard output is closed" in run.stderr
    assert "Traceback" not in run.stderr


def test_an_encoding_that_lacks_a_letter_costs_no_answer(tmp_path: Path) -> None:
    made = graph_with(tmp_path / "names.omni", SCHEMA, {"Thing": [{"name": "Zoë"}]})
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    program = command("query", "--store", made.uri, "-e", NAMES)
    run = subprocess.run(program, capture_output=True, check=True, env=environment)
    assert run.stdout == b"t.name\nZo\\xeb\n"


def test_a_standard_input_that_cannot_be_read_is_named(store: str) -> None:
    written_only = os.open(os.devnull, os.O_WRONLY)
    run = subprocess.run(
        command("query", "--store", store, "--query", "-"),
        stdin=written_only,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(written_only)
    assert run.returncode == Exit.INVALID
    assert "standard input cannot be read: Bad file descriptor" in run.stderr


def test_a_terminal_gets_a_drawn_table_and_a_count(store: str) -> None:
    said = on_a_terminal("query", "--store", store, "-e", NAMES)
    assert "t.name" in said
    assert "─" in said
    assert "2 rows" in said


def test_arrow_is_refused_on_a_terminal(store: str) -> None:
    assert "not for terminals" in on_a_terminal(
        "query", "--store", store, "-e", NAMES, "--format", "arrow"
    )


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_ids_and_times_are_whole_on_every_terminal(store: str, columns: int) -> None:
    (head, *_) = graph.open(store, read_only=True).commits.list()
    shown = on_a_terminal("commit", "list", "--store", store, columns=columns)
    assert head.commit_id in shown
    assert f"{head.created_at:%Y-%m-%d %H:%M:%S}" in shown
    # Nobody said why, so there is no column for it.
    assert "message" not in shown


def on_a_terminal(*arguments: str, columns: int = 200) -> str:
    """What the command shows when a person sits in front of it."""
    told = omnigraph(*arguments, env={"COLUMNS": str(columns), "TERM": "xterm"}, on_terminal=True)
    return told.out + told.err


def test_nothing_of_spark_of_writers_or_of_the_tests_is_started_or_loaded(store: str) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        f"assert main(['query', '--store', {store!r}, '-e', {NAMES!r}, '--json']) == 0\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    # A java on the path would be found by its name; this one could not start.
    environment = {**os.environ, "PATH": "", "JAVA_HOME": "/nonexistent"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    modules = set(run.stderr.split())
    loaded = {each.partition(".")[0] for each in modules}
    # pandas is not among these: pyarrow loads it with the first value, if it is installed at all.
    never = {"pyspark", "py4j", "fastapi", "uvicorn", "hypothesis", "pytest", "rich.markdown"}
    assert (loaded | modules) & never == set()
    ours = ("testing", "engine.spark", "load", "mutation", "merge", "maintenance.checking")
    assert (
        modules & {"pydantic", "pyarrow.parquet", *(f"omnigraph.{each}" for each in ours)} == set()
    )


def test_the_schema_is_shown_as_it_was_written_and_as_json(here: Run, store: str) -> None:
    assert here("schema", "show", "--store", store).out == SCHEMA
    shown = here("schema", "show", "--store", store, "--json").out
    accepted = graph.open(store, read_only=True).schema.show()
    assert accepted.text == SCHEMA
    assert [each["name"] for each in json.loads(shown)["node_types"]] == ["Number", "Thing"]
    first = graph.open(store).commits.list()[-1]
    assert here("schema", "show", "--store", store, "--commit", first.commit_id).out == SCHEMA
    assert here("schema", "show", "--store", store, "--branch", "mian").code == Exit.NOT_FOUND
