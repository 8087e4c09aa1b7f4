"""The mistakes that people make: one clear message each, the next step, and the right exit code."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from omnigraph import graph
from omnigraph.cli.exits import Exit
from omnigraph.cli.main import main
from omnigraph.engine.spark import java, session
from omnigraph.failpoints import Failpoint, arm
from tests.support.commands import Answer
from tests.support.publishing import SCHEMA

Run = Callable[..., Answer]

ALL: Final = "query all() { match { $p: Person } return { $p.name } }"
BY_NAME: Final = (
    "query by_name($name: String) { match { $p: Person {name: $name} } return { $p.name } }"
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a graph, a schema, a query and a few files to load."""
    made = tmp_path_factory.mktemp("original")
    (made / "world.pg").write_text(SCHEMA)
    (made / "people.gq").write_text(ALL)
    files = {
        "people.jsonl": '{"type": "Person", "data": {"name": "ada"}}',
        "misspelt.jsonl": '{"type": "Persn", "data": {"name": "ada"}}',
        "cut.jsonl": '{"type": "Person", "data": {"name": "ada"}',
        "broken.jsonl": '{"type": "Person", "data": {"name": "ada" "age": 3}}',
    }
    for name, line in files.items():
        (made / name).write_text(f"{line}\n")
    graph.init(made / "graph.omni", SCHEMA).branches.create("review")
    return made


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which is a copy: some mistakes change what is there."""
    monkeypatch.chdir(shutil.copytree(original, tmp_path, dirs_exist_ok=True))
    return tmp_path


@dataclass(frozen=True, slots=True)
class Mistake:
    """A command line, and what it must be answered with, in this order."""

    line: list[str]
    code: Exit
    says: list[str]


LOAD: Final = ["load", "graph.omni", "--mode", "append"]
QUERY: Final = ["query", "--store", "graph.omni"]

# fmt: off
MISTAKES: Final = {
    "a wrong path": Mistake(
        ["snapshot", "--store", "grpah.omni"],
        Exit.NOT_FOUND, ["there is no graph at", "grpah.omni", "did you mean", "graph.omni?"]),
    "a path within the graph": Mistake(
        ["snapshot", "--store", "graph.omni/nodes"],
        Exit.NOT_FOUND, ["there is no graph at", "did you mean", "graph.omni?"]),
    "the folder of the graph": Mistake(
        ["snapshot", "--store", "."],
        Exit.NOT_FOUND, ["there is no graph at", "did you mean", "graph.omni?"]),
    "a path that is like no other": Mistake(
        ["snapshot", "--store", "elsewhere"],
        Exit.NOT_FOUND, ["there is no graph at", "omnigraph init"]),
    "no path": Mistake(
        ["snapshot"],
        Exit.USAGE, ["--store", "OMNIGRAPH_STORE"]),
    "a misspelt type in a query": Mistake(
        [*QUERY, "-e", ALL.replace("Person", "Persn")],
        Exit.INVALID, ["no type Persn", "1 |", "^^^^^", "did you mean Person?"]),
    "a misspelt type in a file": Mistake(
        [*LOAD, "--data", "misspelt.jsonl"],
        Exit.INVALID, ["misspelt.jsonl:1", "Persn", "Person"]),
    "a misspelt property": Mistake(
        [*QUERY, "-e", ALL.replace("$p.name", "$p.nmae")],
        Exit.INVALID, ["nmae", "did you mean name?"]),
    "bad JSON in a file": Mistake(
        [*LOAD, "--data", "broken.jsonl"],
        Exit.INVALID, ["broken.jsonl:1", "not valid JSON", "column", "nothing was changed"]),
    "a line that is cut off": Mistake(
        [*LOAD, "--data", "cut.jsonl"],
        Exit.INVALID, ["cut.jsonl:1", "not valid JSON", "column 43"]),
    "bad JSON for parameters": Mistake(
        [*QUERY, "-e", BY_NAME, "--params", "{name: 1}"],
        Exit.INVALID, ["--params is not JSON", "--params '{"]),
    "a missing file to load": Mistake(
        [*LOAD, "--data", "poeple.jsonl"],
        Exit.NOT_FOUND, ["file poeple.jsonl does not exist", "did you mean people.jsonl?"]),
    "a missing query": Mistake(
        [*QUERY, "--query", "peple.gq"],
        Exit.NOT_FOUND, ["file peple.gq does not exist", "did you mean people.gq?"]),
    "a missing schema": Mistake(
        ["init", "other.omni", "--schema", "wrld.pg"],
        Exit.NOT_FOUND, ["schema file wrld.pg does not exist", "did you mean world.pg?"]),
    "a wrong mode": Mistake(
        ["load", "graph.omni", "--data", "people.jsonl", "--mode", "upsert"],
        Exit.USAGE, ["--mode", "upsert", "append", "merge", "overwrite"]),
    "a mistyped branch to read": Mistake(
        [*QUERY, "--branch", "reviw", "-e", ALL],
        Exit.NOT_FOUND, ["no branch reviw", "did you mean review?"]),
    "a mistyped branch to write": Mistake(
        [*LOAD, "--data", "people.jsonl", "--branch", "reviw"],
        Exit.NOT_FOUND, ["no branch reviw", "did you mean review?"]),
    "a parameter that the query had once": Mistake(
        [*QUERY, "-e", BY_NAME, "--param", "nme=ada"],
        Exit.INVALID, ["$nme", "did you mean name?", "$name: String is missing"]),
    "a parameter of another type": Mistake(
        [*QUERY, "-e", BY_NAME, "--params", '{"name": 7}'],
        Exit.INVALID, ["$name", "7", "String"]),
    "a mistyped command": Mistake(
        ["lood"],
        Exit.USAGE, ["No such command 'lood'", "load"]),
    "a mistyped command of a group": Mistake(
        ["branch", "delet", "review"],
        Exit.USAGE, ["No such command 'delet'", "delete"]),
}
# fmt: on


def in_order(text: str, parts: list[str]) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
    return True


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_by_one_message_and_the_next_step(here: Run, name: str) -> None:
    mistake = MISTAKES[name]
    before = graph.open("graph.omni", read_only=True).snapshot().head

    answer = here(*mistake.line)

    assert answer.code == mistake.code, answer.err
    assert in_order(answer.said, mistake.says), answer.err
    assert answer.out == ""
    assert graph.open("graph.omni", read_only=True).snapshot().head == before


@pytest.mark.usefixtures("folder")
def test_spark_without_java_names_the_remedy(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # Another test of this process may have started Spark already.
    monkeypatch.setattr(session, "_running_session", lambda: None)
    monkeypatch.setattr(session, "_own_gateways", [])
    monkeypatch.setattr(java, "find_java", lambda: None)

    answer = here(*QUERY, "-e", ALL, "--engine", "spark")

    assert answer.code == Exit.INVALID
    assert in_order(answer.said, ["error[engine_unavailable]", "Java", "hint:"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.usefixtures("folder")
def test_a_directory_that_may_not_be_written_is_named(here: Run, folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o500)

    answer = here("init", str(closed / "graph.omni"), "--schema", "world.pg")

    assert answer.code == Exit.FAILED
    assert in_order(answer.said, ["error[storage_denied]", "closed", "check the permissions"])


@pytest.mark.usefixtures("folder")
def test_a_storage_that_denies_writing_is_named(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        message = "Permission denied (os error 13)"
        raise OSError(message)

    monkeypatch.setattr("omnigraph.storage.objects.obstore.put", denied)

    answer = here("init", "closed/graph.omni", "--schema", "world.pg")

    assert answer.code == Exit.FAILED
    assert in_order(answer.said, ["error[storage_denied]", "closed", "check the permissions"])


@pytest.mark.usefixtures("folder")
def test_an_interrupted_load_says_that_nothing_was_loaded(here: Run) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with arm(Failpoint.WRITE_AFTER_STAGE, interrupt):
        answer = here(*LOAD, "--data", "people.jsonl")

    assert answer.code == Exit.INTERRUPTED
    assert "interrupted: nothing was loaded" in answer.err
    assert here("check", "--store", "graph.omni").code == Exit.DONE
    assert here(*LOAD, "--data", "people.jsonl").code == Exit.DONE


@pytest.mark.usefixtures("folder")
def test_debug_shows_every_cause_down_to_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def torn(*_: object, **__: object) -> None:
        message = "the cable was pulled"
        raise OSError(message)

    monkeypatch.setattr("omnigraph.storage.tables.lance.dataset", torn)
    assert main(["--debug", "snapshot", "--store", "graph.omni"]) == Exit.FAILED
    told = capsys.readouterr().err
    causes = ["OSError: the cable was pulled", "direct cause", "StorageError", "error[storage]"]
    assert in_order(told, causes)
    assert main(["snapshot", "--store", "graph.omni"]) == Exit.FAILED
    assert capsys.readouterr().err.startswith("error[storage]")
