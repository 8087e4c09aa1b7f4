"""What Python programs meet first: places, arguments, names and errors, right and wrong."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    DiagnosticsError,
    InvalidInputError,
    InvalidParameterError,
    OmnigraphError,
)
from omnigraph.graph import Target
from tests.support.facade_graph import PEOPLE, SCHEMA
from tests.support.graphs import graph_with

QUERY: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.age } }"
ADD: Final = "query add($n: String) { insert City { name: $n } }"
INGEST: Final[dict[str, Any]] = {"checkpoint": "checkpoint", "type": "Person"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return graph_with(
        tmp_path_factory.mktemp("asked") / "graph.omni",
        SCHEMA,
        {"Person": PEOPLE, "City": [{"name": "Oslo"}]},
    )


@pytest.mark.parametrize("place", [None, 3, b"graph.omni"])
def test_a_graph_is_made_and_opened_at_a_text_or_a_path_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameterError, match="the graph's place"):
        omnigraph.init(place, SCHEMA)
    with pytest.raises(InvalidParameterError, match="the graph's place"):
        omnigraph.open(place)
    assert list(tmp_path.iterdir()) == []


class Place:
    """A path that is none of pathlib's."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __fspath__(self) -> str:
        return self.text


def test_every_spelling_of_a_directory_names_one_graph(tmp_path: Path) -> None:
    made = omnigraph.init(f"file:{tmp_path}/graph.omni", SCHEMA)
    assert made.uri == f"{tmp_path}/graph.omni"
    assert omnigraph.open(Place(made.uri)).uri == made.uri


@pytest.mark.parametrize("branch", ["main", "new"])
def test_a_load_starts_at_a_branch_that_exists_or_not_at_all(graph: Graph, branch: str) -> None:
    before = graph.commits.every()
    rows = {"City": [{"name": "Rome"}]}
    with pytest.raises(BranchNotFoundError, match="no branch mian") as refused:
        graph.load(rows, branch=branch, start="mian")
    assert "main" in refused.value.hint
    assert graph.branches.list() == ("main",)
    assert graph.commits.every() == before


def test_a_start_without_a_branch_to_make_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidParameterError, match="give both"):
        graph.load({"City": [{"name": "Rome"}]}, start="main")


WRONG: Final[dict[str, tuple[Callable[[Any], object], str]]] = {
    "parameters in a list": (lambda g: g.query(QUERY, ["ada"]), "params must be a mapping"),
    "no parameters in a list": (lambda g: g.query(QUERY, []), "params must be a mapping"),
    "a number for a name": (lambda g: g.query(QUERY, {1: "ada"}), "each name in params"),
    "parameters of a mutation": (lambda g: g.mutate(ADD, ["Rome"]), "params must be a mapping"),
    "a query of bytes": (lambda g: g.query(b"query"), "source must be the text of a query"),
    "no query": (lambda g: g.explain(None), "source must be the text of a query"),
    "a number for a query's name": (lambda g: g.query(QUERY, name=3), "name must be a text"),
    "a version as a text": (lambda g: g.at(version="1"), "version must be a whole number"),
    "a version that is true": (lambda g: g.snapshot(version=True), "version must be a whole"),
    "a number for a branch": (lambda g: g.at(branch=3), "a branch's name must be a text"),
    "a number for a commit": (lambda g: g.commits.show(3), "a commit must be a text"),
    "no name for a branch": (lambda g: g.branches.create(None), "a branch's name must be a text"),
    "a limit as a text": (lambda g: g.changes(limit="3"), "limit must be a whole number"),
    "a limit of commits": (lambda g: g.commits.list(limit="3"), "limit must be a whole number"),
    "a number for an id": (lambda g: g.entity("Person", 3), "id must be a text"),
    "a number for a type": (lambda g: g.entity(3, "ada"), "type_name must be a text"),
    "a number for a point": (
        lambda g: g.diff(3, "main"),
        "a branch, a commit or a tag must be a text",
    ),
    "numbers for types": (lambda g: g.diff("main", "main", types=[3]), "each of types must be"),
    "a number for types": (lambda g: g.export("out.jsonl", types=3), "types must be a text or"),
    "no target": (lambda g: g.export(None), "target must be a text or a path"),
    "a number for an engine": (lambda g: g.query(QUERY, {"n": ""}, engine=3), "engine must be"),
    "a message of numbers": (lambda g: g.mutate(ADD, {"n": ""}, message=3), "message must be a"),
    "an actor of numbers": (lambda g: g.mutate(ADD, {"n": ""}, actor=3), "actor must be a text"),
    "an actor of blanks": (lambda g: g.mutate(ADD, {"n": ""}, actor=" "), "one line of text"),
    "a long actor": (lambda g: g.mutate(ADD, {"n": ""}, actor="a" * 1000), "one line of text"),
    "no stream": (lambda g: g.ingest([], **INGEST), "a list was given instead of a stream"),
    "a number for a checkpoint": (
        lambda g: g.ingest([], **INGEST | {"checkpoint": 3}),
        "checkpoint must be a text or a path",
    ),
    "an interval of numbers": (lambda g: g.ingest([], **INGEST, every=3), "every must be a text"),
    "a number for rejects": (
        lambda g: g.ingest([], **INGEST, on_error="quarantine", rejects=3),
        "rejects must be a text or a path",
    ),
    "a long message": (lambda g: g.mutate(ADD, {"n": ""}, message="a" * 10**6), "a line or two"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_argument_of_another_kind_is_refused_by_its_name(graph: Graph, wrong: str) -> None:
    before = graph.commits.every()
    attempt, said = WRONG[wrong]
    with pytest.raises(InvalidParameterError) as refused:
        attempt(graph)
    assert said in str(refused.value)
    assert graph.commits.every() == before


PLAIN: Final[dict[str, dict[str, object]]] = {
    "init": {"uri": "new.omni", "schema": SCHEMA},
    "open": {"uri": "graph.omni"},
    "parse_schema": {"text": SCHEMA},
    "query": {"source": QUERY, "params": {"n": "ada"}},
    "explain": {"source": QUERY, "params": {"n": "ada"}},
    "mutate": {"source": ADD, "params": {"n": "Rome"}},
    "load": {"source": {}},
    "ingest": {"stream": object()} | INGEST,
    "export": {"target": "out.jsonl", "replace": True},
    "merge": {"source": "draft"},
    "diff": {"before": "main", "after": "main"},
    "copy": {"target": "copy.omni"},
    "acting_as": {"actor": "ada"},
    "reading": {"target": Target()},
    "entity": {"type_name": "Person", "id": "ada"},
    "branches.create": {"name": "new"},
    "branches.delete": {"name": "gone"},
    "commits.show": {"commit_id": "0" * 26},
    "commits.changes": {"commit_id": "0" * 26},
    "schema.plan": {"schema": SCHEMA},
    "schema.apply": {"schema": SCHEMA},
    "schema.diff": {"before": "main", "after": "main"},
}
"""What each method needs before one of its arguments can be wrong."""

NOT_ASKED: Final = {"clock", "progress", "spark"}
"""Arguments that are objects of programs or of Spark."""


def methods(owner: object, prefix: str = "") -> Iterator[tuple[str, Callable[..., object]]]:
    for name, each in inspect.getmembers(owner, inspect.ismethod):
        # What needs Spark even to refuse is left out.
        if not name.startswith("_") and name not in ("on", "frame", "vertices", "edges"):
            yield prefix + name, each


def test_whatever_is_given_a_refusal_is_one_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = omnigraph.init("graph.omni", SCHEMA)
    graph.branches.create("draft")
    asked: list[tuple[str, Callable[..., object]]] = [
        *(("init", omnigraph.init), ("open", omnigraph.open)),
        ("parse_schema", omnigraph.parse_schema),
        *methods(graph),
        *methods(graph.branches, "branches."),
        *methods(graph.commits, "commits."),
        *methods(graph.schema, "schema."),
    ]
    raw = []
    for name, method in asked:
        for argument in inspect.signature(method).parameters.keys() - NOT_ASKED:
            for value in (3, b"x", ["a"], {"a": 1}, object()):
                try:
                    method(**PLAIN.get(name, {}) | {argument: value})
                except OmnigraphError:
                    continue
                except Exception as error:  # noqa: BLE001  # it is what is looked for
                    raw.append(f"{name}({argument}={value!r}): {error!r}")
    assert raw == []


@pytest.mark.parametrize("schema", [None, {"Person": {}}, b"node Person { name: String }", 3])
def test_a_schema_is_a_text_a_path_or_a_catalog(tmp_path: Path, schema: str) -> None:
    with pytest.raises(InvalidParameterError, match="schema must be"):
        omnigraph.init(tmp_path / "graph.omni", schema)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("schema", ["", "  ", "\n"])
def test_an_empty_schema_is_called_that(tmp_path: Path, schema: str) -> None:
    with pytest.raises(InvalidParameterError, match="schema is empty"):
        omnigraph.init(tmp_path / "graph.omni", schema)
    assert list(tmp_path.iterdir()) == []


def test_diagnostics_name_the_file_of_a_schema_or_none(tmp_path: Path) -> None:
    text = "node Person { name: Strng }"
    file = tmp_path / "people.pg"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DiagnosticsError, match="--> schema:1:21"):
        omnigraph.init(tmp_path / "graph.omni", text)
    with pytest.raises(DiagnosticsError, match="--> schema:1:21"):
        omnigraph.parse_schema(text)
    with pytest.raises(DiagnosticsError, match=r"--> people\.pg:1:21"):
        omnigraph.init(tmp_path / "graph.omni", file)


def test_one_of_several_may_be_given_as_a_text(graph: Graph, tmp_path: Path) -> None:
    first, last = graph.commits.list()[-1].commit_id, "main"
    found = graph.diff(first, last, types="Person", kinds="node", ops="insert")
    assert list(found.counts) == ["Person"]
    assert {each.op for each in found.rows()} == {"insert"}
    assert list(graph.diff(first, last, kinds="edge").counts) == []
    assert list(graph.changes(types="City").commits[-1].diff.counts) == ["City"]
    assert graph.export(tmp_path / "out.jsonl", types="City").rows == {"City": 1}


def test_a_commit_is_found_in_any_case(graph: Graph) -> None:
    head = graph.snapshot().head
    small = head.commit_id.lower()
    assert graph.commits.show(small) == head
    assert graph.at(commit=small).snapshot().head == head
    assert graph.diff(small, "main").before == head.commit_id
    with pytest.raises(CommitNotFoundError):
        graph.diff("0" * 25 + "z", "main")


def test_a_branch_may_be_spelt_like_a_commit_in_lower_case(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    graph.branches.create("0" * 25 + "z")
    assert graph.diff("0" * 25 + "z", "main").before == graph.snapshot().head.commit_id


def test_what_is_neither_a_branch_nor_a_commit_is_called_so(graph: Graph) -> None:
    with pytest.raises(
        BranchNotFoundError, match="neither a tag nor a commit: ids have 26"
    ) as refused:
        graph.diff(graph.snapshot().head.commit_id[:10], "main")
    assert refused.value.hint == "it has main"


def test_a_commit_is_given_alone(graph: Graph) -> None:
    with pytest.raises(InvalidInputError) as refused:
        graph.at(commit=graph.snapshot().head.commit_id, version=1)
    assert refused.value.hint.startswith("give either a commit")


def test_a_handle_goes_on_after_it_was_closed(graph: Graph) -> None:
    with omnigraph.open(graph.uri, read_only=True) as opened:
        pass
    assert opened.query(QUERY, {"n": "ada"}).rows() == [{"p.age": 36}]
