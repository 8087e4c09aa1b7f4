"""The command line as a person meets it: good input, bad input, and no stack traces."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer

from omnigraph import graph
from omnigraph.cli.exits import Exit
from omnigraph.cli.main import app
from tests.support import commands
from tests.support.commands import Answer
from tests.support.publishing import SCHEMA
from tests.support.unprivileged import run_unprivileged

Run = Callable[..., Answer]
GROUPS = ("", "branch", "schema", "commit", "changes", "recovery")


@pytest.fixture
def omnigraph(here: Run) -> Run:
    """One command in this process; `commands.omnigraph` is one in a process of its own."""

    def run(*arguments: str) -> Answer:
        answer = here(*arguments)
        assert not (answer.code and answer.out), "a failure leaves nothing on standard output"
        return answer

    return run


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.pg"
    path.write_text(SCHEMA)
    return str(path)


@pytest.fixture
def store(tmp_path: Path, schema: str, omnigraph: Run) -> str:
    where = str(tmp_path / "graph.omni")
    assert omnigraph("init", where, "--schema", schema, "--actor", "ada").code == Exit.DONE
    return where


def test_init_says_what_it_made(tmp_path: Path, schema: str) -> None:
    where = str(tmp_path / "graph.omni")
    made = commands.omnigraph("init", where, "--schema", schema, "--json")

    assert made.code == Exit.DONE
    assert made.json["graph"] == where
    assert made.json["types"] == ["node:City", "node:Person", "edge:Knows"]
    listed = commands.omnigraph("commit", "list", "--store", where, "--json").json
    assert [each["commit_id"] for each in listed] == [made.json["commit_id"]]


def test_the_store_may_come_from_the_environment(store: str) -> None:
    told = commands.omnigraph("snapshot", "--json", env={"OMNIGRAPH_STORE": store})
    assert [each["row_count"] for each in told.json["tables"]] == [0, 0, 0]


def test_history_is_shown_as_a_table_and_one_commit_as_facts(omnigraph: Run, store: str) -> None:
    listed = omnigraph("commit", "list", "--store", store)
    header, row = listed.out.splitlines()
    assert header.split() == ["commit", "created", "operation", "actor", "message"]
    commit_id = row.split()[0]

    shown = omnigraph("commit", "show", commit_id, "--store", store)
    assert "ada" in shown.out
    assert commit_id in shown.out


def test_what_would_move_the_cursor_is_shown_and_not_done(
    omnigraph: Run, tmp_path: Path, schema: str
) -> None:
    where = str(tmp_path / "graph.omni")
    said = "first line\n\nsecond \x1b[2J line"
    made = omnigraph("init", where, "--schema", schema, "-m", said, "--json").json

    shown = omnigraph("commit", "show", made["commit_id"], "--store", where)

    lines = [line.removeprefix("message").strip() for line in shown.out.splitlines()]
    at = lines.index("first line")
    assert lines[at : at + 3] == ["first line", "", r"second \x1b[2J line"]
    told = omnigraph("commit", "show", made["commit_id"], "--store", where, "--json")
    assert told.json["message"] == said


@pytest.mark.parametrize(
    ("option", "value"), [("--actor", b"\xff"), ("--actor", b"a\nb"), ("-m", b"\xff")]
)
def test_an_actor_or_a_message_that_is_no_text_is_refused_before_anything_is_made(
    omnigraph: Run, tmp_path: Path, schema: str, option: str, value: bytes
) -> None:
    where = tmp_path / "graph.omni"
    refused = omnigraph("init", str(where), "--schema", schema, option, os.fsdecode(value))
    assert refused.code == Exit.INVALID
    assert not where.exists()


def test_commits_can_be_filtered(omnigraph: Run, store: str) -> None:
    def found(text: str) -> int:
        return len(omnigraph("commit", "list", "--store", store, "--filter", text, "--json").json)

    assert (found("actor=ada"), found("actor=bob"), found("operation=init")) == (1, 0, 1)
    refused = omnigraph("commit", "list", "--store", store, "--filter", "colour=red")
    assert (refused.code, "colour=red" in refused.err) == (Exit.INVALID, True)


def test_version_names_what_it_stands_on(omnigraph: Run) -> None:
    assert set(omnigraph("version", "--json").json) == {"omnigraph", "lance", "python"}


def test_a_schema_with_errors_is_refused_with_each_place(omnigraph: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pg"
    bad.write_text("node Person {\n  name: Strng\n  age: I23\n}\n")
    refused = omnigraph("init", str(tmp_path / "graph.omni"), "--schema", str(bad))

    assert refused.code == Exit.INVALID
    assert "bad.pg:2:9" in refused.err
    assert "bad.pg:3:8" in refused.err
    assert not (tmp_path / "graph.omni").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["snapshot", "--store", "{tmp}/nowhere"], Exit.NOT_FOUND, "{tmp}/nowhere"),
        (["snapshot", "--store", "ftp://host/graph"], Exit.INVALID, "ftp://"),
        (["snapshot", "--store", "s3://bucket"], Exit.INVALID, "s3://bucket"),
        (["snapshot", "--store", ""], Exit.INVALID, "not a graph URI"),
        (["snapshot"], Exit.USAGE, "OMNIGRAPH_STORE"),
        (
            ["snapshot", "--store", "{tmp}/schema.pg"],
            Exit.INVALID,
            "a graph is a directory",
        ),
        (["snapshot", "--store", "{store}", "--branch", "mian"], Exit.NOT_FOUND, "main?"),
        (["snapshot", "--store", "{store}", "--branch", "a b"], Exit.INVALID, "a b"),
        (["snapshot", "--store", "{store}", "--version", "99"], Exit.NOT_FOUND, "99"),
        (["snapshot", "--store", "{store}", "--version", "x"], Exit.USAGE, "--version"),
        (["snapshot", "--store", "{store}", "--commit", "nope"], Exit.NOT_FOUND, "nope"),
        (
            ["snapshot", "--store", "{store}", "--commit", "0" * 26, "--branch", "main"],
            Exit.INVALID,
            "commit",
        ),
        (["commit", "show", "0" * 26, "--store", "{store}"], Exit.NOT_FOUND, "0" * 26),
        (["commit", "list", "--store", "{store}", "--limit", "-1"], Exit.USAGE, "--limit"),
        (["init", "{store}", "--schema", "{tmp}/schema.pg"], Exit.CONFLICT, "already holds"),
        (["init", "{tmp}", "--schema", "{tmp}/schema.pg"], Exit.CONFLICT, "not empty"),
        (["init", "{tmp}/new", "--schema", "{tmp}/no.pg"], Exit.NOT_FOUND, "no.pg"),
        (["init", "{tmp}/new"], Exit.USAGE, "--schema"),
        (
            ["init", "{tmp}/new", "--schema", "{tmp}/schema.pg", "--actor", "omnigraph:recovery"],
            Exit.INVALID,
            "reserved",
        ),
        (
            ["init", "{tmp}/new", "--store", "{tmp}/other", "--schema", "{tmp}/schema.pg"],
            Exit.USAGE,
            "but the argument names",
        ),
        (["lode"], Exit.USAGE, "Did you mean 'load'?"),
        (["merge", "draft"], Exit.USAGE, "Did you mean 'branch merge' or 'proposal merge'?"),
        (["show"], Exit.USAGE, "'schema show' or 'commit show' or 'recovery show'?"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    omnigraph: Run, tmp_path: Path, store: str, arguments: list[str], code: Exit, said: str
) -> None:
    filled = [each.format(tmp=tmp_path, store=store) for each in arguments]
    refused = omnigraph(*filled)
    assert refused.code == code, refused.err
    assert said.format(tmp=tmp_path) in " ".join(refused.err.split()), refused.err


def test_what_a_schema_was_perhaps_not_meant_to_say_is_shown_when_it_is_accepted(
    omnigraph: Run, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.pg"
    odd.write_text("node Person { name: String @key  email: String? @unqiue }")
    made = omnigraph("init", str(tmp_path / "one"), "--schema", str(odd))
    assert made.code == Exit.DONE
    assert "did you mean unique?" in made.err
    told = omnigraph("init", str(tmp_path / "two"), "--schema", str(odd), "--json")
    assert (len(told.json["warnings"]), told.err) == (1, "")
    odd.write_text(odd.read_text().replace("email", "post"))
    for command in ("plan", "apply"):
        place = str(tmp_path / "one")
        changed = omnigraph("schema", command, "--store", place, "--schema", str(odd))
        assert "did you mean unique?" in changed.err


def test_the_environment_gives_way_to_the_argument(
    omnigraph: Run, tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", str(tmp_path / "other"))
    made = omnigraph("init", str(tmp_path / "new"), "--schema", schema, "--json")
    assert made.json["graph"] == str(tmp_path / "new")


def test_the_version_is_an_option_too(omnigraph: Run) -> None:
    told = omnigraph("--version").out
    assert told == f"omnigraph {omnigraph('version', '--json').json['omnigraph']}\n"


def test_an_error_is_json_when_json_was_asked_for(omnigraph: Run, tmp_path: Path) -> None:
    refused = omnigraph("snapshot", "--store", str(tmp_path / "nowhere"), "--json")
    told = json.loads(refused.err)
    assert told["code"] == "graph_not_found"
    assert told["hint"]


@pytest.mark.parametrize(
    ("line", "error", "command"),
    [
        ("snapshot --json --version x", "'x' is not a valid int", "omnigraph snapshot"),
        ("branch merge --json", "Missing argument 'SOURCE'", "omnigraph branch merge"),
        ("snapshto --json", "Did you mean 'snapshot'?", "omnigraph"),
        ("snapshot --json", "--store", "omnigraph snapshot"),
    ],
)
def test_a_wrong_command_line_is_told_as_json_too(
    omnigraph: Run, line: str, error: str, command: str
) -> None:
    refused = omnigraph(*line.split())
    assert refused.code == Exit.USAGE
    told = json.loads(refused.err)
    assert error in told["error"]
    assert (told["code"], told["hint"]) == ("usage", f"see '{command} --help'")


def test_debug_shows_the_cause(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "omnigraph", "--debug", "snapshot", "--store", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" in run.stderr
    assert "error[graph_not_found]" in run.stderr


def test_a_corrupted_manifest_is_named(omnigraph: Run, store: str) -> None:
    for each in Path(store, "__manifest", "_versions").glob("*.manifest"):
        each.write_bytes(b"rubbish")
    refused = omnigraph("snapshot", "--store", store)
    assert refused.code == Exit.FAILED
    assert f"{store}/__manifest" in refused.err


def test_a_corrupted_state_file_is_named(omnigraph: Run, store: str) -> None:
    for each in Path(store, "__manifest", "data").glob("*.lance"):
        each.write_bytes(b"rubbish" * 100)
    refused = omnigraph("snapshot", "--store", store)
    assert refused.code == Exit.FAILED
    assert f"{store}/__manifest" in refused.err


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory that any user can reach; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def test_a_directory_that_may_not_be_read_is_named(public_path: Path) -> None:
    store = public_path / "graph.omni"
    graph.init(store, SCHEMA)
    assert run_unprivileged("snapshot", "--store", str(store)).code == Exit.DONE
    store.chmod(0)
    refused = run_unprivileged("snapshot", "--store", str(store))
    assert refused.code == Exit.FAILED
    assert "denied" in refused.err
    assert str(store) in refused.err


def test_a_directory_that_may_not_be_written_is_named(public_path: Path) -> None:
    schema = public_path / "schema.pg"
    schema.write_text(SCHEMA)
    home = public_path / "home"
    home.mkdir(mode=0o555)
    refused = run_unprivileged("init", str(home / "graph.omni"), "--schema", str(schema))
    assert refused.code == Exit.FAILED
    assert "denied" in refused.err
    assert str(home) in refused.err
    assert not list(home.iterdir())


def test_a_bucket_that_does_not_exist_is_named(s3_bucket: str) -> None:
    refused = commands.omnigraph("snapshot", "--store", f"s3://{s3_bucket}-missing/graph")
    assert refused.code == Exit.NOT_FOUND
    assert f"s3://{s3_bucket}-missing/graph" in refused.err
    assert "bucket" in refused.err


def test_a_graph_on_s3_is_made_and_read_by_the_same_commands(s3_bucket: str, schema: str) -> None:
    store = f"s3://{s3_bucket}/graphs/social"
    made = commands.omnigraph("init", store, "--schema", schema, "--json")
    assert made.json["graph"] == store
    assert commands.omnigraph("snapshot", "--store", store, "--json").json["branch"] == "main"


HEAVY = {
    *("lance", "pyarrow", "numpy", "pandas", "duckdb", "pyspark", "py4j", "fastapi", "obstore"),
    *("lark", "sqlglot", "rich", "markdown_it", "pygments", "omnigraph.graph"),
}
ROOMS = {
    *(f"omnigraph.{room}" for room in ("integrity", "lang", "merge", "model", "schema", "query")),
    *("omnigraph.clock", "omnigraph.cli.failures"),
}
SLOW = {"asyncio", "email", "hashlib", "http", "importlib.metadata", "pydantic", "random", "ssl"}


@pytest.mark.parametrize("arguments", [["--help"], ["query", "--help"], ["lint", "--help"]])
def test_help_loads_only_what_it_shows(arguments: list[str]) -> None:
    assert loaded_by(*arguments) & (HEAVY | ROOMS | SLOW) == set()


def test_help_reads_no_signature_to_list_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    root = typer.main.get_command(app)
    reading = Mock(side_effect=AssertionError("a command was made"))
    monkeypatch.setattr(typer.main, "get_params_from_function", reading)

    with pytest.raises(SystemExit) as end:
        root(["--help"])
    assert end.value.code == 0
    with pytest.raises(AssertionError, match="a command was made"):
        root(["query", "--help"])


@pytest.mark.parametrize("path", GROUPS)
def test_help_has_room_for_what_each_command_says_of_itself(path: str, omnigraph: Run) -> None:
    told = omnigraph(*path.split(), "--help").out.partition("Commands:")[2].splitlines()
    assert len(told) > 1
    assert [line for line in told if line.endswith("...")] == []


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("init", "Usage: omnigraph init [OPTIONS] [URI]\n"),
        ("load", "Usage: omnigraph load [OPTIONS] [GRAPH]\n"),
        ("query", "Usage: omnigraph query [OPTIONS] [NAME]\n"),
        ("lint", "Usage: omnigraph lint [OPTIONS] {FILE...}\n"),
    ],
)
def test_help_marks_once_what_may_be_left_out(command: str, usage: str) -> None:
    assert usage in commands.omnigraph(command, "--help").out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("omnigraph br", ["branch"]),
        ("omnigraph branch me", ["merge"]),
        ("omnigraph branch merge --in", ["--into"]),
        ("omnigraph load --mode ", ["append", "merge", "overwrite"]),
    ],
)
def test_a_shell_completes_commands_options_and_choices(typed: str, offered: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    told = commands.omnigraph(env={"_OMNIGRAPH_COMPLETE": "complete_bash", **words})
    assert (told.code, told.out.split()) == (Exit.DONE, offered)


def test_what_asks_no_graph_loads_no_heavy_library() -> None:
    assert loaded_by("version") & HEAVY == set()


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a run of the command has loaded when it ends."""
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        f"assert main({list(arguments)!r}) == 0\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stderr.split())
