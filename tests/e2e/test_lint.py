"""`omnigraph lint` as a person meets it: every error and warning, where it is, and no guessing."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from omnigraph import graph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer

SCHEMA: Final = """\
node Person {
  name: String @key
  born: Date?
}
node City { name: String @key }
edge LivesIn: Person -> City @card(0..1)
"""
QUERIES: Final = """\
query neighbours($city: String, $after: Date?) @description("who lives there") {
  match { $p livesIn $c $c.name = $city $p.born > $after }
  return { $p.name as name $p.born count($c) as homes }
}
query move($who: String, $where: String) { insert LivesIn { from: $who to: $where } }
"""

Run = Callable[..., Answer]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("world.pg").write_text(SCHEMA)
    Path("people.gq").write_text(QUERIES)
    return tmp_path


def test_what_is_right_is_passed_in_silence(here: Run) -> None:
    told = here("lint", "world.pg", "people.gq", "--schema", "world.pg")
    assert (told.code, told.out) == (Exit.DONE, "")
    assert told.err == "0 errors and 0 warnings in 2 files\n"


def test_every_error_of_every_file_is_shown_where_it_is(here: Run) -> None:
    Path("bad.pg").write_text("node Person {\n  name: Strng\n  age: I23\n}\n")
    Path("bad.gq").write_text("query q() { match { $p: Persn } return { $p.name } }")
    told = here("lint", "bad.pg", "bad.gq", "people.gq", "--schema", "world.pg")
    assert told.code == Exit.INVALID
    for place in ("bad.pg:2:9", "bad.pg:3:8", "bad.gq:1:25"):
        assert place in told.out
    assert told.out.endswith(
        "error[T1]: the schema has no type Persn\n"
        " --> bad.gq:1:25\n"
        "  |\n"
        "1 | query q() { match { $p: Persn } return { $p.name } }\n"
        "  |                         ^^^^^ did you mean Person?\n"
        "\n"
    )
    assert told.err == "3 errors and 0 warnings in 4 files\n"


def test_warnings_alone_are_no_failure(here: Run) -> None:
    Path("odd.pg").write_text("node Person { name: String @unqiue }")
    told = here("lint", "odd.pg")
    assert told.code == Exit.DONE
    assert "warning[S100]" in told.out
    assert "did you mean unique?" in told.out
    assert told.err == "0 errors and 1 warning in 1 file\n"


def test_json_says_what_each_query_takes_gives_reads_and_writes(here: Run) -> None:
    told = here("lint", "people.gq", "--schema", "world.pg", "--json").json
    assert (told["errors"], told["warnings"]) == (0, 0)
    assert [each["file"] for each in told["files"]] == ["world.pg", "people.gq"]
    neighbours, move = told["files"][1]["queries"]
    assert neighbours == {
        "name": "neighbours",
        "kind": "read",
        "description": "who lives there",
        "instruction": None,
        "parameters": [
            {"name": "city", "type": "String", "nullable": False},
            {"name": "after", "type": "Date", "nullable": True},
        ],
        "columns": [
            {"name": "name", "type": "String", "nullable": False},
            {"name": "p.born", "type": "Date", "nullable": True},
            {"name": "homes", "type": "I64", "nullable": False},
        ],
        "reads": ["edge:LivesIn", "node:City", "node:Person"],
        "writes": [],
    }
    assert (move["kind"], move["columns"], move["writes"]) == ("mutation", [], ["edge:LivesIn"])


def test_json_has_positions_from_start_to_end(here: Run) -> None:
    Path("bad.gq").write_text("query q() {\n  match { $p: Persn }\n  return { $p.name }\n}")
    told = here("lint", "bad.gq", "--schema", "world.pg", "--json")
    assert told.code == Exit.INVALID
    _, found = told.json["files"]
    assert found["queries"] is None
    assert found["diagnostics"] == [
        {
            "code": "T1",
            "severity": "error",
            "line": 2,
            "column": 15,
            "end_line": 2,
            "end_column": 20,
            "message": "the schema has no type Persn",
            "hint": "did you mean Person?",
        }
    ]


def test_the_schema_may_come_from_a_graph(here: Run) -> None:
    graph.init("world.omni", "world.pg")
    told = here("lint", "people.gq", "--store", "world.omni")
    assert (told.code, told.err) == (Exit.DONE, "0 errors and 0 warnings in 1 file\n")


def test_a_schema_with_errors_leaves_only_the_syntax_to_check(here: Run) -> None:
    Path("bad.pg").write_text("node Person { name: Strng }")
    Path("bad.gq").write_text("query a() { match { $p: Nobody } return { $p } } query b( {")
    told = here("lint", "bad.gq", "--schema", "bad.pg")
    assert told.code == Exit.INVALID
    assert "Strng" in told.out
    assert "error[Q000]" in told.out
    assert "error[T1]: the schema has no type" not in told.out
    assert "bad.gq: only the syntax was checked" in told.err


@pytest.mark.parametrize("name", ["empty.pg", "empty.gq"])
def test_an_empty_file_has_nothing_wrong_with_it(here: Run, name: str) -> None:
    for text in (b"", b"\xef\xbb\xbf"):
        Path(name).write_bytes(text)
        assert here("lint", name, "--schema", "world.pg").code == Exit.DONE


def test_a_mark_at_the_start_shifts_no_column(here: Run) -> None:
    Path("marked.gq").write_bytes(b"\xef\xbb\xbfquery q() { match { $p: Persn } return { $p } }")
    assert " --> marked.gq:1:25\n" in here("lint", "marked.gq", "--schema", "world.pg").out
    Path("marked.pg").write_bytes(b"\xef\xbb\xbf" + SCHEMA.encode())
    assert here("init", "marked.omni", "--schema", "marked.pg").code == Exit.DONE
    assert here("schema", "show", "--store", "marked.omni").out == SCHEMA


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], Exit.USAGE, "FILE"),
        (["people.gq"], Exit.USAGE, "--schema FILE or --store URI"),
        (["readme.md"], Exit.USAGE, "readme.md is neither"),
        (["none.pg"], Exit.NOT_FOUND, "file none.pg does not exist"),
        (["people.gq", "--schema", "none.pg"], Exit.NOT_FOUND, "file none.pg does not exist"),
        (["people.gq", "--store", "none.omni"], Exit.NOT_FOUND, "none.omni"),
        (["folder.pg"], Exit.INVALID, "folder.pg cannot be read"),
        (["latin.pg"], Exit.INVALID, "latin.pg is not UTF-8: line 1"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run, arguments: list[str], code: Exit, said: str
) -> None:
    Path("folder.pg").mkdir()
    Path("latin.pg").write_bytes(b"// caf\xe9")
    refused = here("lint", *arguments)
    assert refused.code == code, refused.err
    assert said in refused.said, refused.err
    assert refused.out == ""


def test_the_one_schema_among_the_files_is_what_queries_are_checked_against(
    tmp_path: Path, here: Run
) -> None:
    (tmp_path / "s.pg").write_text("node Person { name: String @key }")
    (tmp_path / "q.gq").write_text("query q() { match { $p: Persn } return { $p.name } }")
    told = here("lint", str(tmp_path / "s.pg"), str(tmp_path / "q.gq"))
    assert told.code == Exit.INVALID
    assert "did you mean Person?" in told.out


def test_a_former_name_is_reported_with_the_name_of_now(here: Run, tmp_path: Path) -> None:
    handle = graph.init(tmp_path / "g.omni", "node Person { name: String @key }")
    handle.schema.apply('node Human @rename_from("Person") { name: String @key }')
    (tmp_path / "old.gq").write_text("query q() { match { $p: Person } return { $p.name } }")
    answer = here("lint", str(tmp_path / "old.gq"), "--store", handle.uri, "--json")
    [found] = answer.json["files"][0]["diagnostics"]
    assert found["hint"] == "it is called Human now"
