"""Writes against a model of dictionaries: whatever happens, the graph is what the model says.

Inserts, updates, deletes with their cascades, refusals, two writers at once, crashes at any
failpoint, reopens, index builds and optimizes, in any order. Writers fold fragments all the time.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import omnigraph
from omnigraph.errors import ErrorCode, TableConflictError
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.integrity.violations import IntegrityError
from omnigraph.manifest.layout import RECOVERY
from omnigraph.model.counts import Counts
from omnigraph.storage.compaction import measure_fragments
from tests.support.crashes import Cut, sleeping_at
from tests.support.folding import eager_folds

SCHEMA = """
node Person { name: String @key  age: I32? }
node Dog { name: String @key  owner: String? @unique }
edge Knows: Person -> Person { since: I32? }
edge Owns: Person -> Dog @card(0..2)
"""
TEXTS = {
    "person": "query q($n: String, $a: I32?) { insert Person { name: $n, age: $a } }",
    "dog": "query q($n: String, $o: String?) { insert Dog { name: $n, owner: $o } }",
    "knows": "query q($a: String, $b: String, $s: I32?) "
    "{ insert Knows { from: $a, to: $b, since: $s } }",
    "owns": "query q($a: String, $b: String) { insert Owns { from: $a, to: $b } }",
    "pair": "query q($n: String, $a: I32?, $b: String) "
    "{ insert Person { name: $n, age: $a } insert Knows { from: $n, to: $b } }",
    "age": "query q($a: I32?, $n: String) { update Person set { age: $a } where name = $n }",
    "older": "query q($a: I32, $b: I32) { update Person set { age: $b } where age = $a }",
    "since": "query q($s: I32?, $a: String) { update Knows set { since: $s } where from = $a }",
    "gone": "query q($n: String) { delete Person where name = $n }",
    "dog gone": "query q($n: String) { delete Dog where name = $n }",
    "parted": "query q($a: String) { delete Knows where to = $a }",
}
PEOPLE = st.sampled_from(["ada", "bob", "it's", "Zoë", ""])
DOGS = st.sampled_from(["rex", "fido"])
NUMBERS = st.none() | st.integers(0, 3)
CUTS = st.sampled_from(
    [
        point
        for point in Failpoint
        if point.partition(".")[0] in ("write", "claim", "apply", "publish", "recovery")
    ]
)


BEFORE_THE_CLAIM = st.sampled_from(
    [Failpoint.WRITE_AFTER_HEAL, Failpoint.WRITE_AFTER_PLAN, Failpoint.WRITE_AFTER_STAGE]
)


@dataclass
class Model:
    """The graph as dictionaries. Edges have ids that only the graph knows, so they are a list."""

    people: dict[str, int | None] = field(default_factory=dict)
    dogs: dict[str, str | None] = field(default_factory=dict)
    knows: list[tuple[str, str, int | None]] = field(default_factory=list)
    owns: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Refusal:
    """A rule is broken, according to the model."""


Effect = Mapping[str, Counts] | Refusal


def put_person(model: Model, name: str, age: int | None) -> Counts:
    is_new = name not in model.people
    model.people[name] = age
    return Counts(inserted=int(is_new), updated=int(not is_new))


def person(model: Model, n: str, a: int | None) -> Effect:
    return {"Person": put_person(model, n, a)}


def dog(model: Model, n: str, o: str | None) -> Effect:
    if o is not None and any(owner == o and name != n for name, owner in model.dogs.items()):
        return Refusal()
    is_new = n not in model.dogs
    model.dogs[n] = o
    return {"Dog": Counts(inserted=int(is_new), updated=int(not is_new))}


def knows(model: Model, a: str, b: str, s: int | None) -> Effect:
    if not {a, b} <= model.people.keys():
        return Refusal()
    model.knows.append((a, b, s))
    return {"Knows": Counts(inserted=1)}


def owns(model: Model, a: str, b: str) -> Effect:
    if a not in model.people or b not in model.dogs:
        return Refusal()
    if sum(source == a for source, _ in model.owns) >= 2:
        return Refusal()
    model.owns.append((a, b))
    return {"Owns": Counts(inserted=1)}


def pair(model: Model, n: str, a: int | None, b: str) -> Effect:
    if b != n and b not in model.people:
        return Refusal()
    changes = put_person(model, n, a)
    model.knows.append((n, b, None))
    return {"Person": changes, "Knows": Counts(inserted=1)}


def age(model: Model, a: int | None, n: str) -> Effect:
    if n not in model.people:
        return {}
    model.people[n] = a
    return {"Person": Counts(updated=1)}


def older(model: Model, a: int, b: int) -> Effect:
    matching = [name for name, years in model.people.items() if years == a]
    model.people.update(dict.fromkeys(matching, b))
    return {"Person": Counts(updated=len(matching))} if matching else {}


def since(model: Model, s: int | None, a: str) -> Effect:
    count = sum(source == a for source, _, _ in model.knows)
    model.knows = [(x, y, s if x == a else z) for x, y, z in model.knows]
    return {"Knows": Counts(updated=count)} if count else {}


def delete_person(model: Model, n: str) -> Effect:
    if n not in model.people:
        return {}
    del model.people[n]
    before = len(model.knows), len(model.owns)
    model.knows = [each for each in model.knows if n not in each[:2]]
    model.owns = [each for each in model.owns if each[0] != n]
    lost = before[0] - len(model.knows), before[1] - len(model.owns)
    edges = {
        name: Counts(deleted=count) for name, count in zip(("Knows", "Owns"), lost, strict=True)
    }
    return {
        "Person": Counts(deleted=1),
        **{name: each for name, each in edges.items() if each.deleted},
    }


def delete_dog(model: Model, n: str) -> Effect:
    if n not in model.dogs:
        return {}
    del model.dogs[n]
    before = len(model.owns)
    model.owns = [each for each in model.owns if each[1] != n]
    lost = before - len(model.owns)
    return {"Dog": Counts(deleted=1), **({"Owns": Counts(deleted=lost)} if lost else {})}


def delete_knows(model: Model, a: str) -> Effect:
    before = len(model.knows)
    model.knows = [each for each in model.knows if each[1] != a]
    lost = before - len(model.knows)
    return {"Knows": Counts(deleted=lost)} if lost else {}


@dataclass(frozen=True)
class Step:
    """One mutation, and its effect on the model."""

    text: str
    params: dict[str, object]
    effect: Callable[..., Effect]

    @property
    def is_insert(self) -> bool:
        return "update" not in TEXTS[self.text] and "delete" not in TEXTS[self.text]

    def run(self, graph: omnigraph.Graph) -> Mapping[str, Counts]:
        return graph.mutate(TEXTS[self.text], self.params).changes

    def apply(self, model: Model) -> Effect:
        return self.effect(model, **self.params)


STEPS = st.one_of(
    st.builds(lambda n, a: Step("person", {"n": n, "a": a}, person), PEOPLE, NUMBERS),
    st.builds(lambda n, o: Step("dog", {"n": n, "o": o}, dog), DOGS, st.none() | PEOPLE),
    st.builds(
        lambda a, b, s: Step("knows", {"a": a, "b": b, "s": s}, knows), PEOPLE, PEOPLE, NUMBERS
    ),
    st.builds(lambda a, b: Step("owns", {"a": a, "b": b}, owns), PEOPLE, DOGS),
    st.builds(
        lambda n, a, b: Step("pair", {"n": n, "a": a, "b": b}, pair), PEOPLE, NUMBERS, PEOPLE
    ),
    st.builds(lambda a, n: Step("age", {"a": a, "n": n}, age), NUMBERS, PEOPLE),
    st.builds(
        lambda a, b: Step("older", {"a": a, "b": b}, older), st.integers(0, 3), st.integers(0, 3)
    ),
    st.builds(lambda s, a: Step("since", {"s": s, "a": a}, since), NUMBERS, PEOPLE),
    st.builds(lambda n: Step("gone", {"n": n}, delete_person), PEOPLE),
    st.builds(lambda n: Step("dog gone", {"n": n}, delete_dog), DOGS),
    st.builds(lambda a: Step("parted", {"a": a}, delete_knows), PEOPLE),
)


def contents(graph: omnigraph.Graph) -> Model:
    """The graph's rows, read back."""

    def rows(text: str) -> list[Any]:
        return [tuple(row.values()) for row in graph.query(text).rows()]

    return Model(
        dict(rows("query q() { match { $p: Person } return { $p.name, $p.age } }")),
        dict(rows("query q() { match { $d: Dog } return { $d.name, $d.owner } }")),
        sorted(
            rows(
                "query q() { match { $a: Person $b: Person $a $e:knows $b } "
                "return { $a.name, $b.name, $e.since } }"
            ),
            key=repr,
        ),
        sorted(
            rows(
                "query q() { match { $a: Person $d: Dog $a $e:owns $d } "
                "return { $a.name, $d.name } }"
            ),
            key=repr,
        ),
    )


def sort_edges(model: Model) -> Model:
    return Model(
        model.people, model.dogs, sorted(model.knows, key=repr), sorted(model.owns, key=repr)
    )


def require_shape(conflict: TableConflictError) -> None:
    assert conflict.code is ErrorCode.EXPECTED_VERSION_MISMATCH
    assert conflict.details.keys() >= {"table_key", "expected", "actual"}


class WriteMachine(RuleBasedStateMachine):
    """Drives one graph and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.stack.enter_context(eager_folds(2, deleted_rows=1))
        self.uri = str(Path(folder) / "graph.omni")
        self.model = Model()
        self.graph: omnigraph.Graph

    @initialize()
    def start(self) -> None:
        self.graph = omnigraph.init(self.uri, SCHEMA)

    @rule(step=STEPS)
    def mutate(self, step: Step) -> None:
        expected = step.apply(after := deepcopy(self.model))
        head = self.graph.snapshot().head
        if isinstance(expected, Refusal):
            with pytest.raises(IntegrityError):
                step.run(self.graph)
            assert self.graph.snapshot().head == head
            return
        assert step.run(self.graph) == expected
        assert (self.graph.snapshot().head == head) is (not expected)
        self.model = after

    @rule(step=STEPS, point=CUTS)
    def crash(self, step: Step, point: Failpoint) -> None:
        """The write crashes; readers see the old state or the new, before and after a reopen."""
        expected = step.apply(after := deepcopy(self.model))
        try:
            with arm(point):
                step.run(self.graph)
        except SimulatedCrash:
            reader = omnigraph.open(self.uri, read_only=True)
            assert contents(reader) in (sort_edges(self.model), sort_edges(after))
            self.reopen()
            if contents(self.graph) != sort_edges(self.model):
                self.model = after
        except IntegrityError:
            assert isinstance(expected, Refusal)
        else:
            assert not isinstance(expected, Refusal)
            self.model = after

    @rule(step=STEPS, point=CUTS, again=CUTS)
    def crash_twice(self, step: Step, point: Failpoint, again: Failpoint) -> None:
        """The recovery crashes too."""
        after = deepcopy(self.model)
        if isinstance(step.apply(after), Refusal):
            return
        try:
            with arm(point):
                step.run(self.graph)
        except SimulatedCrash:
            try:
                with arm(again):
                    omnigraph.open(self.uri)
            except SimulatedCrash:
                pass
            self.reopen()
            if contents(self.graph) != sort_edges(self.model):
                self.model = after
        else:
            self.model = after

    @rule(mine=STEPS, other=STEPS)
    def race(self, mine: Step, other: Step) -> None:
        """Another writer lands between the plan and the first effect of this one."""
        between = deepcopy(self.model)
        if isinstance(other.apply(between), Refusal):
            return
        together = deepcopy(between)
        alone, after_other = mine.apply(deepcopy(self.model)), mine.apply(together)
        if isinstance(alone, Refusal):
            return
        rival = omnigraph.open(self.uri)
        waiting = [other]

        def interfere() -> None:
            if waiting:
                waiting.pop().run(rival)

        try:
            with arm(Failpoint.WRITE_AFTER_PLAN, interfere):
                mine.run(self.graph)
        except TableConflictError as conflict:
            require_shape(conflict)
            assert not mine.is_insert
            self.model = between
        except IntegrityError:
            assert isinstance(after_other, Refusal)
            assert mine.is_insert
            self.model = between
        else:
            assert not waiting
            # Either planned again on the other's result, or on tables that the other did not
            # touch; a plan that matched no row cannot conflict.
            self.model = together if alone else between

    @rule(step=STEPS, point=BEFORE_THE_CLAIM)
    def be_overtaken_by_an_optimize(self, step: Step, point: Failpoint) -> None:
        """Maintenance between the plan and the first effect of a write makes no difference."""
        expected = step.apply(after := deepcopy(self.model))
        if isinstance(expected, Refusal):
            return
        with sleeping_at(Cut(point), omnigraph.open(self.uri).optimize):
            assert step.run(self.graph) == expected
        self.model = after

    @rule(step=STEPS, point=BEFORE_THE_CLAIM)
    def overtake_an_optimize(self, step: Step, point: Failpoint) -> None:
        """An optimize that is overtaken lands after the write."""
        expected = step.apply(after := deepcopy(self.model))
        if isinstance(expected, Refusal):
            return
        rival = omnigraph.open(self.uri)
        with sleeping_at(Cut(point), lambda: step.run(rival)):
            self.graph.optimize()
        self.model = after

    @rule()
    def optimize(self) -> None:
        self.graph.optimize()
        assert self.graph.optimize().commit_id is None
        for pin in self.graph.snapshot().pins.values():
            sizes = measure_fragments(self.graph._store.tables.open_pin(pin))
            assert len(sizes) == min(pin.row_count, 1)
            assert not any(size.deleted_count for size in sizes)

    @rule(point=CUTS)
    def crash_an_optimize(self, point: Failpoint) -> None:
        """No row changes, whether it lands or not."""
        try:
            with arm(point):
                self.graph.optimize()
        except SimulatedCrash:
            assert contents(omnigraph.open(self.uri, read_only=True)) == sort_edges(self.model)
            self.reopen()

    @rule()
    def index(self) -> None:
        self.graph.ensure_indices()
        assert self.graph.ensure_indices().commit_id is None

    @rule()
    def reopen(self) -> None:
        self.graph = omnigraph.open(self.uri)
        head = self.graph.snapshot().head
        recoveries = self.graph.recoveries.list()
        again = omnigraph.open(self.uri)
        assert (again.snapshot().head, again.recoveries.list()) == (head, recoveries)

    @precondition(lambda self: hasattr(self, "graph"))
    @invariant()
    def the_graph_is_the_model(self) -> None:
        assert contents(self.graph) == sort_edges(self.model)
        store = self.graph._store
        assert store.objects.list(RECOVERY) == ()
        operations = [each.operation_id for each in self.graph.recoveries.list()]
        assert len(operations) == len(set(operations))
        for pin in self.graph.snapshot().pins.values():
            assert store.tables.head_version(pin.location, ref=pin.ref) == pin.version
            table = store.tables.open(pin.location, ref=pin.ref, version=pin.version)
            assert table.count_rows() == pin.row_count

    def teardown(self) -> None:
        self.stack.close()


TestWrites = WriteMachine.TestCase
TestWrites.settings = settings(max_examples=12, stateful_step_count=12)


@pytest.mark.soak
def test_many_long_histories() -> None:
    run_state_machine_as_test(
        WriteMachine,
        settings=settings(
            max_examples=300,
            stateful_step_count=40,
            derandomize=False,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
