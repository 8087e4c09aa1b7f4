"""Optimizes race other operations, in every order: nothing is lost, and only maintenance waits."""

import io
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.model.commits import MAINTENANCE_ACTOR, OperationKind
from omnigraph.model.names import MAIN
from tests.support import crashes
from tests.support.concurrency import in_processes
from tests.support.crashes import (
    Cut,
    Picture,
    as_other_machine,
    at_rest,
    has_sidecar,
    much_later,
    picture,
    put_to_death,
    rows_of,
    sleeping_at,
    trace,
)
from tests.support.folding import eager_folds
from tests.support.publishing import PERSON, SCHEMA
from tests.support.races import in_threads
from tests.support.writers import DRAFT, RENAMED, WRITERS, furnished, insert, person, upserts, write

WIDENED: Final = SCHEMA.replace("age: I32?", 'age: I32?  kind: String @default("old")')
SIDE: Final = "side"

_numbers = count()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tables with small fragments, deleted rows and indexes, and a branch to merge."""
    graph = furnished(str(tmp_path_factory.mktemp("base") / "graph.omni"))
    prepare = WRITERS["optimize"].prepare
    assert prepare is not None
    prepare(graph)
    graph.branches.create(SIDE)
    graph.branches.create(DRAFT)
    write(graph, {PERSON: upserts(person("ada", 40), person("sue"))}, branch=SIDE)
    insert(graph, "one", branch=DRAFT)
    insert(graph, "two", branch=DRAFT)
    return graph.uri


@pytest.fixture
def place(base: str, tmp_path: Path) -> Callable[[], str]:
    return lambda: crashes.copied(base, tmp_path / f"{next(_numbers)}.omni")


@pytest.fixture
def _apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with as_other_machine(monkeypatch):
        yield


def _mutate(text: str, graph: Graph) -> object:
    return graph.mutate(f"query q() {{ {text} }}")


def _load(mode: str, rows: Mapping[str, object], graph: Graph) -> object:
    return graph.load(rows, mode=mode, index=False)


def _load_a_stream(graph: Graph) -> object:
    """An input that can be read once."""
    line = b'{"type": "Person", "data": {"name": "eva"}}\n'
    return graph.load(io.BytesIO(line), mode="merge", index=False)


EVA: Final = {"Person": [{"name": "eva", "age": 7}, {"name": "ada", "age": 8}]}
EDGES: Final = {"Knows": [{"id": "e1", "src": "ada", "dst": "dan"}]}

Operation = Callable[[Graph], object]
Opener = Callable[[str], Graph]
# fmt: off
OPERATIONS: Final[dict[str, Operation]] = {
    "an insert":         partial(_mutate, 'insert Person { name: "eva" }'),
    "an update":         partial(_mutate, 'update Person set { age: 40 } where name = "ada"'),
    "a delete":          partial(_mutate, 'delete Person where name = "bob"'),
    "an append":         partial(_load, "append", {"Person": EVA["Person"][:1]}),
    "an upsert":         partial(_load, "merge", EVA),
    "an overwrite":      partial(_load, "overwrite", EDGES),
    "a load of a pipe":  _load_a_stream,
    "a merge":           lambda graph: graph.merge(SIDE),
    "a new property":    lambda graph: graph.schema.apply(WIDENED),
    "a new name":        lambda graph: graph.schema.apply(RENAMED),
    "a new branch":      lambda graph: graph.branches.create("fresh"),
    "a deleted branch":  lambda graph: graph.branches.delete(SIDE),
    "an index":          lambda graph: graph.ensure_indices(),
    "another optimize":  lambda graph: graph.optimize(),
    "a repair":          lambda graph: graph.repair(),
}
# fmt: on

STAGED: Final = Cut(Failpoint.WRITE_AFTER_STAGE)


def cuts_of(uri: str, operation: Operation, *, claimed: bool) -> list[Cut]:
    """Where the operation can be overtaken; if it is claimed, by those who take it for dead."""
    cuts = trace(lambda: operation(omnigraph.open(uri)))
    claim = Cut(Failpoint.CLAIM_AFTER_PUT)
    first = cuts.index(claim) if claim in cuts else len(cuts)
    return cuts[first:] if claimed else cuts[:first]


def without_optimize(place: Callable[[], str], operation: Operation) -> Picture:
    """The rows that are right: those after the operation alone."""
    uri = place()
    operation(omnigraph.open(uri))
    return picture(uri)


def check(uri: str, right: Picture, cut: Cut) -> None:
    """Nothing is lost, nothing is left, and what was optimized stays optimized."""
    seen = picture(uri)
    assert seen.rows == right.rows, cut
    assert seen.schemas == right.schemas, cut
    assert not has_sidecar(uri), cut
    at_rest(uri, rows=True)
    graph = omnigraph.open(uri)
    graph.optimize()
    assert graph.optimize().commit_id is None
    assert picture(uri).rows == right.rows, cut


def overtake_optimize(uri: str, cut: Cut, operation: Operation, opener: Opener) -> None:
    """The operation happens while an optimize sleeps here; neither may fail."""
    graph = omnigraph.open(uri)
    with sleeping_at(cut, lambda: operation(opener(uri))):
        result = graph.optimize()
    commits = graph.commits.list()
    landed = [each for each in commits if each.commit_id == result.commit_id]
    assert result.commit_id is None or [each.operation for each in landed] == ["optimize"]


def overtake_by_optimize(uri: str, cut: Cut, operation: Operation, opener: Opener) -> None:
    """An optimize lands while the operation sleeps here; neither may fail."""
    graph = omnigraph.open(uri)
    made: list[str | None] = []
    with sleeping_at(cut, lambda: made.append(opener(uri).optimize().commit_id)):
        operation(graph)
    assert made


@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_optimize_that_is_overtaken_lands_on_top_of_it(place, name):
    uri = place()
    overtake_optimize(uri, STAGED, OPERATIONS[name], omnigraph.open)
    check(uri, without_optimize(place, OPERATIONS[name]), STAGED)


@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_write_that_an_optimize_overtakes_does_not_fail(place, name):
    operation = OPERATIONS[name]
    cuts = cuts_of(place(), operation, claimed=False)
    for cut in cuts[-1:]:
        uri = place()
        overtake_by_optimize(uri, cut, operation, omnigraph.open)
        check(uri, without_optimize(place, operation), cut)


@pytest.mark.soak
@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_optimize_may_be_overtaken_anywhere(place, name):
    operation = OPERATIONS[name]
    right = without_optimize(place, operation)
    for claimed, opener in ((False, omnigraph.open), (True, much_later)):
        for cut in cuts_of(place(), WRITERS["optimize"].write, claimed=claimed):
            uri = place()
            overtake_optimize(uri, cut, operation, opener)
            check(uri, right, cut)


@pytest.mark.soak
@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_optimize_may_overtake_anywhere(place, name):
    operation = OPERATIONS[name]
    right = without_optimize(place, operation)
    for claimed, opener in ((False, omnigraph.open), (True, much_later)):
        for cut in cuts_of(place(), operation, claimed=claimed):
            uri = place()
            overtake_by_optimize(uri, cut, operation, opener)
            check(uri, right, cut)


INSERT: Final = "query q($n: String) { insert Person { name: $n } }"
AGE: Final = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
FOUND: Final = "query q($n: String) { insert City { name: $n } }"
LEAVE: Final = "query q($n: String) { delete City where name = $n }"


def _insert_people(graph: Graph, writer: int, rounds: int) -> list[str]:
    names = [f"p{writer}-{number}" for number in range(rounds)]
    for name in names:
        assert graph.mutate(INSERT, {"n": name}).commit_id is not None
    return names


def _found_and_leave(graph: Graph, rounds: int) -> list[str]:
    """Updates and deletes of a table that nobody else but maintenance touches: none may fail."""
    names = [f"c{number}" for number in range(rounds)]
    for name, earlier in zip(names, ["", *names], strict=False):
        graph.mutate(FOUND, {"n": name})
        if earlier:
            assert graph.mutate(LEAVE, {"n": earlier}).changes["City"].deleted == 1
    return names[-1:]


def _optimize_until(graph: Graph, is_over: Callable[[], bool]) -> list[str]:
    made = []
    while not is_over():
        result = graph.optimize()
        made += [result.commit_id] if result.commit_id else []
        time.sleep(0.05)
    return made


def _write_in_a_crowd(barrier: Any, uri: str, role: int, rounds: int) -> list[str]:
    """Three insert people, one founds and leaves cities, and one optimizes now and then."""
    with eager_folds():
        graph = omnigraph.open(uri)
        barrier.wait(60)
        if role < 3:
            return _insert_people(graph, role, rounds)
        if role == 3:
            return _found_and_leave(graph, rounds)
        ends = iter([False] * 5 + [True])
        return _optimize_until(graph, lambda: next(ends))


def _check_crowd(uri: str, answers: list[list[str]]) -> None:
    *people, cities, optimized = answers
    rows = picture(uri).rows
    added = [row["id"] for row in rows[MAIN, "node:Person"]]
    assert added == sorted(["ada", "bob", "dan", *(name for names in people for name in names)])
    assert [row["id"] for row in rows[MAIN, "node:City"]] == [*cities, "rome"]
    commits = omnigraph.open(uri).commits.list()
    folds = [each for each in commits if each.actor == MAINTENANCE_ACTOR]
    assert folds
    assert {each.operation for each in folds} == {OperationKind.OPTIMIZE}
    assert set(optimized) <= {each.commit_id for each in commits}
    assert at_rest(uri, rows=True).recoveries == ()


@pytest.mark.parametrize("crowd", ["threads", "processes"])
def test_a_crowd_of_writers_and_optimizes_loses_nothing(place, crowd):
    uri = place()
    omnigraph.open(uri).settings.set("maintenance.optimize", "auto")
    work = [(uri, role, 8) for role in range(5)]
    run = in_processes if crowd == "processes" else in_threads
    with eager_folds():
        answers = run(_write_in_a_crowd, work)
    _check_crowd(uri, answers)


RENAMED_PERSON: Final = SCHEMA.replace("Person", "Human").replace(
    "node Human", 'node Human @rename_from("Person")'
)
STAGED_AND_CLAIMED: Final = Cut(Failpoint.CLAIM_AFTER_PUT)


def _replace_branch(graph: Graph) -> None:
    graph.branches.delete(DRAFT)
    graph.branches.create(DRAFT)


def _insert_by_name(uri: str, name: str) -> None:
    insert(omnigraph.open(uri), name, branch=DRAFT)


# fmt: off
OVERTAKING_A_FOLD: Final[dict[str, Operation]] = {
    "its type is renamed":   lambda graph: graph.schema.apply(RENAMED_PERSON, branch=DRAFT),
    "its branch is deleted": lambda graph: graph.branches.delete(DRAFT),
    "its branch is another": _replace_branch,
    "its rows are updated":  lambda graph: graph.mutate(AGE, {"n": "one", "a": 1}, branch=DRAFT),
    "it was optimized":      lambda graph: graph.optimize(branch=DRAFT),
    "a writer dies":         lambda graph: put_to_death(STAGED_AND_CLAIMED, _insert_by_name,
                                                        graph.uri, "victim"),
}
# fmt: on


def _run_on(uri: str, operation: Operation) -> None:
    operation(omnigraph.open(uri))


@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OVERTAKING_A_FOLD)
def test_a_fold_that_is_overtaken_gives_way_in_silence(place, name):
    operation = OVERTAKING_A_FOLD[name]
    # Before it begins, and when all its files are written.
    for cut in (Cut(Failpoint.WRITE_AFTER_SETTLE), Cut(Failpoint.WRITE_AFTER_STAGE, 2)):
        uri = place()
        graph = omnigraph.open(uri)
        graph.settings.set("maintenance.optimize", "auto")
        with eager_folds(2), sleeping_at(cut, partial(_run_on, uri, operation)):
            result = graph.mutate(INSERT, {"n": "last"}, branch=DRAFT)
        assert result.commit_id is not None
        assert result.warnings == (), cut
        omnigraph.open(uri)
        at_rest(uri, rows=True)
        if not name.startswith("its branch"):
            assert "last" in {row["id"] for row in rows_of(uri, PERSON, DRAFT)}
