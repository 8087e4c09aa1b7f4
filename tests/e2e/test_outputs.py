"""Commands whose report cannot be printed: what they have done stays done, and is said so."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.graph import Graph
from tests.support.commands import command
from tests.support.writers import furnished

FULL: Final = Path("/dev/full")
ADD: Final = 'query q() { insert Person { name: "eva" } }'

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = furnished(str(tmp_path / "graph.omni"))
    (tmp_path / "eva.jsonl").write_text('{"type": "Person", "data": {"name": "eva"}}\n')
    return graph


def run(graph: Graph, *arguments: str, full: str) -> subprocess.CompletedProcess[str]:
    """Run a command of which one of the two streams, `stdout` or `stderr`, cannot be written."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ExitStack() as files:
        streams[full] = files.enter_context(FULL.open("w"))
        return subprocess.run(
            command(*arguments, "--store", graph.uri),
            check=False,
            text=True,
            timeout=60,
            cwd=Path(graph.uri).parent,
            **streams,
        )


LOAD: Final = ("load", "--data", "eva.jsonl", "--mode", "append")
MUTATE: Final = ("mutate", "-e", ADD)


@pytest.mark.parametrize("arguments", [LOAD, MUTATE], ids=lambda each: each[0])
def test_talk_that_cannot_be_printed_fails_nothing(
    graph: Graph, arguments: tuple[str, ...]
) -> None:
    done = run(graph, *arguments, full="stderr")
    assert done.returncode == Exit.DONE
    assert done.stdout.split()[4:] == ["Person", "1", "0", "0"]
    assert graph.entity("Person", "eva") is not None


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(graph: Graph) -> None:
    refused = run(graph, "mutate", "-e", ADD, "--branch", "nope", full="stderr")
    assert refused.returncode == Exit.NOT_FOUND


@pytest.mark.parametrize("arguments", [LOAD, MUTATE], ids=lambda each: each[0])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_report_that_cannot_be_printed_says_which_commit_has_landed(
    graph: Graph, arguments: tuple[str, ...], form: tuple[str, ...]
) -> None:
    failed = run(graph, *arguments, *form, full="stdout")
    assert failed.returncode == Exit.FAILED
    landed = next(each.commit_id for each in graph.commits.list() if each.operation != "index")
    note = f"commit {landed} has landed all the same"
    if form:
        assert json.loads(failed.stderr)["notes"] == [note]
    else:
        assert note in failed.stderr


def test_a_merge_and_branches_say_what_they_have_done_where_it_cannot_be_printed(
    graph: Graph,
) -> None:
    made = run(graph, "branch", "create", "draft", full="stdout")
    assert "branch draft was made all the same" in made.stderr
    graph.at(branch="draft").mutate(ADD)
    merged = run(graph, "branch", "merge", "draft", "--json", full="stdout")
    assert f"commit {graph.snapshot().head.commit_id} has landed" in merged.stderr
    deleted = run(graph, "branch", "delete", "draft", "--confirm", full="stdout")
    assert "branch draft was deleted all the same" in deleted.stderr
    codes = {made.returncode, merged.returncode, deleted.returncode}
    assert codes == {Exit.FAILED}
    assert omnigraph.open(graph.uri).branches.list() == ("main",)
