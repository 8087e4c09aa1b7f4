"""`omnigraph load` as a person meets it."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from time import sleep
from typing import IO, Any, Final
from unittest.mock import Mock

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

import omnigraph
from omnigraph.branching import lifecycle
from omnigraph.cli.exits import Exit
from omnigraph.cli.progress import Bars, show_progress
from omnigraph.engine.spark.settings import SessionSettings, Workload, default_settings
from omnigraph.errors import ConflictError, ErrorCode
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.limits import LOAD_BLOCK_BYTES
from omnigraph.recovery.pending import Pending
from tests.support.commands import Answer, command

SCHEMA: Final = """
node Person { name: String @key  born: Date?  age: I32?  @range(age, 0..150) }
node City { name: String @key }
edge LivesIn: Person -> City @card(0..1)
"""
WORLD: Final = """\
{"edge": "LivesIn", "from": "Ada", "to": "Oslo"}
{"type": "Person", "data": {"name": "Ada", "age": 36}}
{"type": "Person", "data": {"name": "Bob"}}
{"type": "City", "data": {"name": "Oslo"}}
"""
NAMES: Final = "query names() { match { $p: Person } return { $p.name as name } order { name } }"

QUARANTINED: Final = ("--on-error", "quarantine", "--rejects")

Run = Callable[..., Answer]


def made(place: Path) -> str:
    graph = omnigraph.init(place / "graph.omni", SCHEMA)
    graph.load({"Person": [{"name": "Zoe", "age": 1}]}, index=False)
    return graph.uri


@pytest.fixture
def store(tmp_path: Path) -> str:
    return made(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph for requests that must leave it as it is."""
    return made(tmp_path_factory.mktemp("untouched"))


@pytest.fixture
def world(tmp_path: Path) -> str:
    path = tmp_path / "world.jsonl"
    path.write_text(WORLD)
    return str(path)


def people(store: str, branch: str | None = None) -> list[object]:
    rows = omnigraph.open(store, read_only=True).query(NAMES, branch=branch).rows()
    return [each["name"] for each in rows]


def head(store: str) -> str:
    return str(omnigraph.open(store, read_only=True).snapshot().head.commit_id)


def written(path: Path, *lines: object) -> str:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return str(path)


def test_a_file_is_loaded_in_one_commit_and_counted(here: Run, store: str, world: str) -> None:
    told = here("load", store, "--data", world, "--mode", "append", "-m", "why", "--actor", "ada")
    assert told.code == Exit.DONE, told.err
    rows = {each.split()[0]: each.split()[1:] for each in told.out.splitlines()[1:]}
    counts = {"City": "1", "Person": "2", "LivesIn": "1"}
    assert list(rows.items()) == [(name, [n, "0", "0"]) for name, n in counts.items()]
    commits = omnigraph.open(store, read_only=True).commits.list()
    assert [each.operation for each in commits[:2]] == ["index", "load"]
    assert (commits[1].actor, commits[1].message) == ("ada", "why")
    first, second = told.err.splitlines()
    assert first == f"commit {commits[1].commit_id} on branch main"
    assert second.startswith("engine: local (")
    assert people(store) == ["Ada", "Bob", "Zoe"]


def test_the_result_is_json_for_programs(here: Run, store: str, world: str) -> None:
    told = here("load", store, "--data", world, "--mode", "append", "--no-index", "--json")
    assert told.err == ""
    facts = told.json
    assert facts["commit_id"] == head(store)
    assert facts["changes"]["Person"] == {"inserted": 2, "updated": 0, "deleted": 0}
    assert (facts["mode"], facts["engine"], facts["rejected"]) == ("append", "local", 0)
    assert set(facts["seconds"]) == {"read", "check", "stage"}


@pytest.mark.parametrize(
    ("mode", "changes", "found"),
    [
        ("merge", {"inserted": 1, "updated": 1, "deleted": 0}, ["Ada", "Yan", "Zoe"]),
        ("overwrite", {"inserted": 2, "updated": 0, "deleted": 2}, ["Ada", "Zoe"]),
    ],
)
def test_each_mode_does_what_it_says(
    here: Run, store: str, tmp_path: Path, mode: str, changes: object, found: list[str]
) -> None:
    omnigraph.open(store).load({"Person": [{"name": "Yan"}]}, index=False)
    rows = [{"name": "Ada"}, {"name": "Zoe"}]
    lines = [{"type": "Person", "data": each} for each in rows]
    path = written(tmp_path / "a.jsonl", *lines)
    told = here("load", "--store", store, "--data", path, "--mode", mode, "--no-index", "--json")
    assert told.json["changes"] == {"Person": changes}
    assert people(store) == found


def test_files_of_one_type_are_mapped_or_named_by_it(here: Run, store: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,born\nAda,1815-12-10\n")
    (tmp_path / "more.csv").write_text("name\nBob\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "City.csv").write_text("name\nOslo\n")
    (tmp_path / "parts" / "LivesIn.jsonl").write_text('{"from": "Ada", "to": "Oslo"}\n')
    told = here(
        *("load", "--store", store, "--mode", "append", "--no-index", "--json"),
        *("--map", f"Person={tmp_path}/people.csv", "--map", f"Person={tmp_path}/more.csv"),
        *("--data", f"{tmp_path}/parts/*"),
    )
    counts = {name: each["inserted"] for name, each in told.json["changes"].items()}
    assert counts == {"City": 1, "LivesIn": 1, "Person": 2}


def test_standard_input_is_loaded_onto_a_branch_that_is_made_for_it(here: Run, store: str) -> None:
    told = here(
        *("load", "--store", store, "--data", "-", "--mode", "append"),
        *("--branch", "import/1", "--from", "main", "--no-index", "--json"),
        given=WORLD.encode(),
    )
    assert told.json["branch"] == "import/1"
    assert "stream" in told.json["why"]
    assert people(store) == ["Zoe"]
    assert people(store, branch="import/1") == ["Ada", "Bob", "Zoe"]


def test_an_input_without_rows_makes_no_commit(here: Run, untouched: str, tmp_path: Path) -> None:
    before = head(untouched)
    (tmp_path / "empty.jsonl").touch()
    told = here("load", untouched, "--data", f"{tmp_path}/empty.jsonl", "--mode", "append")
    assert (told.code, told.out) == (Exit.DONE, "")
    assert "nothing to load" in told.err
    assert head(untouched) == before


def test_rows_that_exist_need_another_mode(here: Run, untouched: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"type": "Person", "data": {"name": "Zoe"}})
    refused = here("load", untouched, "--data", path, "--mode", "append")
    assert "Person 'Zoe' already exists" in refused.err
    assert "hint: to replace rows that exist, load with --mode merge" in refused.err


def test_an_input_of_wrong_rows_only_is_told_as_that(
    here: Run, untouched: str, tmp_path: Path
) -> None:
    before = head(untouched)
    path = written(tmp_path / "a.jsonl", {"type": "Persn"}, {"type": "City", "data": {"name": 7}})
    rejects = str(tmp_path / "rejects.jsonl")
    told = here("load", untouched, "--data", path, "--mode", "append", *QUARANTINED, rejects)
    assert (told.code, told.out) == (Exit.DONE, "")
    assert told.err.splitlines() == [
        "every row was rejected: nothing was loaded, branch main has no new commit",
        f"2 rows were rejected: see {rejects}",
    ]
    assert head(untouched) == before


def test_rejects_are_not_written_to_urls(here: Run, untouched: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"type": "City", "data": {"name": 7}})
    refused = here("load", untouched, "--data", path, "--mode", "append", *QUARANTINED, "s3://x/y")
    assert (refused.code, refused.out) == (Exit.INVALID, "")
    assert "cannot be written to s3://, only to this machine" in refused.err


def test_standard_input_that_is_closed_is_told_as_that(here: Run, untouched: str) -> None:
    refused = here("load", untouched, "--data", "-", "--mode", "append", given=None)
    assert (refused.code, refused.out) == (Exit.INVALID, "")
    assert "standard input is closed" in refused.err


BROKEN: Final = (
    '{"type": "Person", "data": {"name": "Eva", "age": 151}}\n'
    '{"type": "Persn", "data": {"name": "Fay"}}\n'
    '{"type": "Person", "data": {"name": "Gus"}\n'
    '{"type": "Person", "data": {"name": "Hal", "born": "soon"}}\n'
    '{"type": "Person", "data": {"name": "Ida", "agee": 1}}\n'
    '{"edge": "LivesIn", "from": "Jo", "to": "Rome"}\n'
    '{"type": "Person", "data": {"name": "Kim"}}\n'
)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    path = tmp_path / "broken.jsonl"
    path.write_text(BROKEN)
    return str(path)


def test_rows_that_break_rules_are_a_table_with_their_places(
    here: Run, untouched: str, broken: str
) -> None:
    before = head(untouched)
    refused = here("load", untouched, "--data", broken, "--mode", "append")
    assert (refused.code, refused.out) == (Exit.INVALID, "")
    first, *rest = refused.err.splitlines()
    assert first == "error[integrity]: the data breaks the schema: 7 violations"
    assert rest[0].split() == ["rule", "type", "property", "violations"]
    assert "endpoint LivesIn src 1" in refused.said
    for line, said in {
        1: "Person 'Eva': age 151 is not in 0..150",
        2: "the schema has no type Persn (did you mean Person?)",
        3: "not valid JSON",
        4: "soon is not of type Date",
        5: "did you mean age?",
        6: "which does not exist",
    }.items():
        place = f"{broken}:{line} "
        assert any(each.startswith(place) and said in each for each in rest), refused.err
    assert head(untouched) == before


def test_a_report_of_violations_is_json_for_programs(
    here: Run, untouched: str, broken: str
) -> None:
    refused = here("load", untouched, "--data", broken, "--mode", "append", "--json")
    told = json.loads(refused.err)
    assert (refused.code, told["code"], told["details"]["total"]) == (3, "integrity", 7)
    found = {each["origin"]: each for each in told["details"]["violations"]}
    assert found[f"{broken}:1"]["rule"] == "range"
    assert found[f"{broken}:1"]["value"] == 151
    assert {each["rule"] for each in told["details"]["counts"]} == {"range", "type", "endpoint"}


def test_many_violations_are_counted_and_the_first_are_shown(
    here: Run, untouched: str, tmp_path: Path
) -> None:
    rows = [{"type": "Person", "data": {"name": f"p{n}", "age": -n}} for n in range(1, 31)]
    path = written(tmp_path / "many.jsonl", *rows)
    refused = here("load", untouched, "--data", path, "--mode", "append")
    assert "range Person age 30" in refused.said
    assert "and 10 more like these" in refused.err
    assert f"{path}:20 " in refused.err
    assert f"{path}:21 " not in refused.err


def test_one_of_several_rows_of_a_key_is_loaded(here: Run, store: str, tmp_path: Path) -> None:
    path = written(tmp_path / "twice.jsonl", *[{"type": "Person", "data": {"name": "Bo"}}] * 3)
    refused = here("load", store, "--data", path, "--mode", "append")
    assert refused.code == Exit.INVALID
    assert "--on-duplicate first or last" in refused.err
    told = here("load", store, "--data", path, "--mode", "append", "--on-duplicate", "first")
    assert told.code == Exit.DONE, told.err
    assert "left out 2 rows: another row of the input has the same id" in told.err
    assert people(store) == ["Bo", "Zoe"]


def test_rows_can_be_rejected_into_a_file_and_the_others_loaded(
    here: Run, store: str, broken: str, tmp_path: Path
) -> None:
    rejects = tmp_path / "rejects.jsonl"
    quarantine = ["--on-error", "quarantine", "--rejects", str(rejects)]
    told = here("load", store, "--data", broken, "--mode", "append", "--no-index", *quarantine)
    assert told.code == Exit.DONE, told.err
    assert f"6 rows were rejected: see {rejects}" in told.err
    lines = [json.loads(each) for each in rejects.read_text().splitlines()]
    assert [each["origin"] for each in lines] == [f"{broken}:{line}" for line in range(1, 7)]
    assert people(store) == ["Kim", "Zoe"]
    message = omnigraph.open(store, read_only=True).commits.list()[0].message
    assert message == "6 rows rejected, see rejects.jsonl"


def test_a_load_that_fails_leaves_no_file_of_rejects_and_can_be_tried_again(
    here: Run, store: str, broken: str, tmp_path: Path
) -> None:
    rejects = tmp_path / "rejects.jsonl"
    again = ["load", store, "--data", broken, "--mode", "append", *QUARANTINED, str(rejects)]

    def fail() -> None:
        assert rejects.exists(), "the plan has written them"
        message = "others were faster"
        raise ConflictError(message, hint="try again")

    with arm(Failpoint.WRITE_AFTER_PLAN, fail):
        assert here(*again).code == Exit.CONFLICT
    assert not rejects.exists()
    assert here(*again).code == Exit.DONE
    assert len(rejects.read_text().splitlines()) == 6


def test_values_that_no_property_takes_can_be_dropped(
    here: Run, store: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.jsonl", {"type": "Person", "data": {"name": "Ada", "x": 1}})
    told = here("load", store, "--data", path, "--mode", "append", "--ignore-unknown", "--json")
    assert told.json["changes"]["Person"]["inserted"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{store}", "--data", "{world}", "--mode", "upsert"], Exit.USAGE, "upsert"),
        (["{store}", "--data", "{world}"], Exit.USAGE, "--mode"),
        (["{store}", "--mode", "merge"], Exit.USAGE, "nothing to load"),
        (
            ["{store}", "--store", "other", "--data", "{world}", "--mode", "merge"],
            Exit.USAGE,
            "but the argument names",
        ),
        (["--data", "{world}", "--mode", "merge"], Exit.USAGE, "OMNIGRAPH_STORE"),
        (["{world}", "--data", "{world}", "--mode", "merge"], Exit.USAGE, "its own --data"),
        (["a", "b", "--data", "{world}", "--mode", "merge"], Exit.USAGE, "its own --data"),
        (["{tmp}/no", "--data", "{world}", "--mode", "merge"], Exit.NOT_FOUND, "{tmp}/no"),
        (["{store}", "--data", "{tmp}/word.jsonl", "--mode", "merge"], 5, "world.jsonl?"),
        (
            ["{store}", "--data", "{tmp}/*.parquet", "--mode", "merge"],
            Exit.NOT_FOUND,
            "no file matches",
        ),
        (["{store}", "--data", "{tmp}/a.xml", "--mode", "merge"], Exit.INVALID, ".jsonl"),
        (["{store}", "--data", "{tmp}/Persn.csv", "--mode", "merge"], 5, "did you mean Person?"),
        (["{store}", "--map", "Persn={world}", "--mode", "merge"], 5, "did you mean Person?"),
        (["{store}", "--map", "person={world}", "--mode", "merge"], 5, "did you mean Person?"),
        (["{store}", "--map", "{world}", "--mode", "merge"], Exit.INVALID, "--map Type=path"),
        (["{store}", "--data", "{tmp}/Persn.csv", "--mode", "merge"], 5, "--map Type={tmp}/Persn"),
        (["{store}", "--map", "Person=-", "--mode", "merge"], Exit.INVALID, "give --data -"),
        (["{store}", "--data", "-", "--data", "-", "--mode", "merge"], 3, "input is named twice"),
        (["{store}", "--data", "{tmp}/pipe", "--mode", "merge"], 3, "give a stream as --data -"),
        (
            ["{store}", "--data", "{world}", "--mode", "merge", "--branch", "mian"],
            Exit.NOT_FOUND,
            "did you mean main?",
        ),
        (
            ["{store}", "--data", "{world}", "--mode", "merge", "--branch", "x", "--from", "mian"],
            Exit.NOT_FOUND,
            "did you mean main?",
        ),
        (
            ["{store}", "--data", "{world}", "--mode", "merge", "--rejects", "{tmp}/r"],
            Exit.USAGE,
            "go together",
        ),
        (
            ["{store}", "--data", "{world}", "--mode", "merge", "--on-error", "quarantine"],
            Exit.USAGE,
            "go together",
        ),
        (
            ["{store}", "--data", "{world}", "--mode=merge", *QUARANTINED, "{world}"],
            Exit.CONFLICT,
            "world.jsonl exists hint: choose another name for the rejected rows, or move it",
        ),
        (
            ["{store}", "--data", "{world}", "--mode=merge", *QUARANTINED, "-"],
            Exit.INVALID,
            "rejected rows cannot be written to standard output",
        ),
        (
            ["{store}", "--data", "{world}", "--mode", "merge", "--from", "main"],
            Exit.USAGE,
            "--from creates a branch, which --branch names: give both",
        ),
        (
            ["{store}", "--data", "{world}", "--mode", "merge", "--engine", "flink"],
            Exit.USAGE,
            "flink",
        ),
        (
            ["{store}", "--data", "{world}", "--mode=merge", "--engine=local", "--master=local[2]"],
            Exit.USAGE,
            "--master cannot be used with --engine local",
        ),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run,
    untouched: str,
    world: str,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    before = head(untouched)
    for name in ("a.xml", "Persn.csv"):
        (tmp_path / name).write_text("name\nAda\n")
    os.mkfifo(tmp_path / "pipe")
    filled = [each.format(store=untouched, world=world, tmp=tmp_path) for each in arguments]
    refused = here("load", *filled)
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said.format(tmp=tmp_path) in refused.said, refused.err
    assert head(untouched) == before
    assert omnigraph.open(untouched, read_only=True).branches.list() == ("main",)
    assert Path(world).read_text() == WORLD


def test_no_branch_is_created_for_a_load_that_cannot_begin(
    here: Run, untouched: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Mock(side_effect=AssertionError("a branch was created"))
    monkeypatch.setattr(lifecycle, "create", create)
    place = ("--branch", "review", "--from", "main")
    refused = here("load", untouched, "--data", f"{tmp_path}/no.jsonl", "--mode", "append", *place)
    assert refused.code == Exit.NOT_FOUND, refused.err


def test_spark_would_start_at_the_master_of_the_command_and_for_short_work(
    here: Run, untouched: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = default_settings(), list[SessionSettings]()

    def refuse(*_: object, **__: object) -> None:
        seen.append(default_settings())
        message = "nothing is loaded here"
        raise ConflictError(message, hint="")

    monkeypatch.setattr(Graph, "load", refuse)
    here("load", untouched, "--data", world, "--mode", "append", "--master", "local[3]")
    assert seen == [SessionSettings(master="local[3]", work=Workload.SHORT)]
    assert default_settings() is before


@pytest.mark.parametrize("kind", [Failpoint.WRITE_AFTER_STAGE, Failpoint.WRITE_AFTER_EACH_APPLY])
def test_an_interrupt_anywhere_leaves_nothing_to_see_and_nothing_to_recover(
    here: Run, store: str, world: str, kind: Failpoint
) -> None:
    before = head(store)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with arm(kind, interrupt):
        told = here("load", store, "--data", world, "--mode", "append")
    assert (told.code, told.out) == (Exit.INTERRUPTED, "")
    assert "interrupted: nothing was loaded" in told.err
    graph = omnigraph.open(store, read_only=True)
    assert people(store) == ["Zoe"]
    assert graph.recoveries.pending() == Pending((), (), ())
    assert here("load", store, "--data", world, "--mode", "append").code == Exit.DONE
    assert before in [each.commit_id for each in graph.commits.list()]


def test_an_interrupt_names_the_load_that_landed_on_a_branch_made_for_it_and_no_older_one(
    here: Run, store: str, world: str
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with arm(Failpoint.WRITE_AFTER_PUBLISH, interrupt):
        told = here(
            *("load", store, "--data", world, "--mode", "append"),
            *("--branch", "review", "--from", "main"),
        )
    assert told.code == Exit.INTERRUPTED
    landed = omnigraph.open(store).snapshot(branch="review").head
    assert landed.operation == "load"
    first, note = told.err.splitlines()
    assert first == f"interrupted; loaded meanwhile: commit {landed.commit_id}"
    assert "branch review, which was created for this load, was not deleted" in note


def fails_at_the_second_plan(error: BaseException) -> AbstractContextManager[None]:
    """Lets the write that follows a load fail: that of its indexes."""

    def fail() -> None:
        raise error

    return arm(Failpoint.WRITE_AFTER_PLAN, fail, after_hits=1)


def test_an_interrupt_while_indexes_are_built_says_that_the_load_is_done(
    here: Run, store: str, world: str
) -> None:
    with fails_at_the_second_plan(KeyboardInterrupt()):
        told = here("load", store, "--data", world, "--mode", "append")
    assert told.code == Exit.INTERRUPTED
    assert told.err.splitlines() == [
        f"interrupted; loaded meanwhile: commit {head(store)}",
        f"the load landed as commit {head(store)}; "
        "run 'omnigraph index', or graph.ensure_indices() in Python",
    ]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_load_whose_indexes_cannot_be_built_is_done_and_warns(
    here: Run, store: str, world: str, form: tuple[str, ...]
) -> None:
    busy = ConflictError("node:Person stayed busy", hint="try again", code=ErrorCode.TABLE_BUSY)
    with fails_at_the_second_plan(busy):
        told = here("load", store, "--data", world, "--mode", "append", *form)
    assert told.code == Exit.DONE
    assert people(store) == ["Ada", "Bob", "Zoe"]
    message = "the indexes of branch main are not up to date: node:Person stayed busy"
    hint = "run 'omnigraph index', or graph.ensure_indices() in Python"
    assert told.err.splitlines()[-2:] == [f"warning: {message}", f"  hint: {hint}"]
    if form:
        assert told.json["commit_id"] == head(store)
        assert told.json["warnings"] == [
            {"step": "index", "code": "table_busy", "message": message, "hint": hint}
        ]


def test_progress_is_lines_for_what_takes_long_and_nothing_for_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for size in (LOAD_BLOCK_BYTES, 100 * LOAD_BLOCK_BYTES):
        with show_progress(quiet=False, unit="bytes") as show:
            assert show is not None
            for part in range(101):
                show("read", part * size // 100, size)
            for stage in ("check", "stage", "commit"):
                show(stage, 0, 1)
                show(stage, 1, 1)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "read 0 bytes of 1.7 GB"
    assert said[-4:] == ["read 1.7 GB of 1.7 GB", "check", "stage", "commit"]
    assert len(said) == 14
    with show_progress(quiet=True) as show:
        assert show is None


def test_progress_is_a_bar_for_each_stage_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    columns = (TextColumn("{task.description}"), TextColumn("{task.fields[amount]}"))
    with Progress(*columns, console=console) as progress:
        show = Bars(progress, "bytes")
        for done in (0, 500_000, 1_000_000):
            show("read", done, 1_000_000)
        show("check", 0, 1)
        assert [each.total for each in progress.tasks] == [1_000_000, None]
        show("check", 1, 1)
        assert [each.finished for each in progress.tasks] == [True, True]
        assert progress.tasks[0].fields["amount"] == "1.0 MB of 1.0 MB"


def child(store: str, *arguments: str, stdin: Any = None) -> subprocess.Popen[bytes]:
    program = command("load", store, "--mode", "append", *arguments)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": stdin}
    return subprocess.Popen(program, env={**os.environ, "NO_COLOR": "1"}, **pipes)


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Let children hear of interrupts, also where the tests run in the background and do not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
def test_ctrl_c_in_the_middle_of_a_large_file_cancels_the_load(store: str, tmp_path: Path) -> None:
    row = '{"type": "Person", "data": {"name": "%s%07d"}}\n'
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        file.writelines(row % ("x" * 400, number) for number in range(2 * LOAD_BLOCK_BYTES // 400))
    before = head(store)
    with child(store, "--data", str(path)) as process:
        said: IO[bytes] = process.stderr  # type: ignore[assignment]
        assert said.readline().startswith(b"read 0 bytes of ")
        process.send_signal(signal.SIGINT)
        rest = said.read()
    assert process.returncode == Exit.INTERRUPTED, rest
    assert rest.endswith(b"interrupted: nothing was loaded\n")
    assert b"Traceback" not in rest
    assert head(store) == before


def test_sigterm_cancels_as_ctrl_c_does(store: str) -> None:
    before = head(store)
    with child(store, "--data", "-", stdin=subprocess.PIPE) as process:
        given: IO[bytes] = process.stdin  # type: ignore[assignment]
        # More than a pipe holds: once it is written, somebody is reading.
        given.write(b'{"type": "City", "data": {"name": "Oslo"}}\n' * 10_000)
        given.flush()
        while ioctl(given, FIONREAD, bytes(4)) != bytes(4):
            sleep(0.01)
        # Python acts on a signal when it interrupts a read, so let it come to that.
        sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == Exit.INTERRUPTED
        assert process.stderr is not None
        assert process.stderr.read() == b"interrupted: nothing was loaded\n"
    assert head(store) == before


def test_help_and_a_load_in_this_process_start_no_spark(store: str, world: str) -> None:
    program = (
        "import sys; from omnigraph.cli.main import main; "
        f"main(['load', {store!r}, '--data', {world!r}, '--mode', 'append', '--json']); "
        "print('pyspark' in sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stderr.decode().strip() == "False"
