"""Schema changes of random graphs with random rows, against a model made of dictionaries."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from omnigraph.graph import Graph, init
from omnigraph.integrity.violations import IntegrityError, Rule
from tests.contract.evolution.worlds import pins_by_name, read_all, require_sound
from tests.property.schema_draws import Draws
from tests.property.schema_model import (
    ARROW,
    DST,
    SRC,
    GraphModel,
    ModelType,
    change,
    delete,
    differences,
    write,
)

ordinary = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
some = settings(ordinary, max_examples=ordinary.max_examples // 5)


@dataclass
class Walk:
    """A graph and its model; every step is done to both.

    Attributes:
        commits: The commits of each branch, oldest first, with what they hold.
    """

    graph: Graph
    draws: Draws
    commits: dict[str, list[tuple[str, GraphModel]]] = field(default_factory=dict)

    def model(self, branch: str) -> GraphModel:
        return self.commits[branch][-1][1]

    def learn(self, branch: str, model: GraphModel) -> None:
        head = self.graph.snapshot(branch=branch).head.commit_id
        self.commits.setdefault(branch, []).append((str(head), model))

    def write_row(self, branch: str) -> None:
        model = self.model(branch)
        type_ = self.draws.pick(model.types)
        drawn = self.draws.row(model, type_)
        if drawn is None:
            return
        id_, row = drawn
        note(f"{branch}: write {type_.name} {row}")
        rows = {type_.name: to_table(type_, row)}
        self.graph.load(rows, mode="merge", branch=branch, engine="local", index=False)
        self.learn(branch, write(model, type_.number, id_, row))

    def delete_node(self, branch: str) -> None:
        model = self.model(branch)
        nodes = [
            (type_, id_)
            for type_ in model.types
            for id_ in model.rows[type_.number]
            if not type_.ends
        ]
        if not nodes:
            return
        type_, id_ = self.draws.pick(nodes)
        note(f"{branch}: delete {type_.name} {id_}")
        [key] = [one.name for one in type_.properties if one.is_key]
        text = f'query q() {{ delete {type_.name} where {key} = "{id_}" }}'
        self.graph.mutate(text, branch=branch)
        self.learn(branch, delete(model, type_.number, id_))

    def change_schema(self, branch: str, new: GraphModel) -> None:
        old, text = self.model(branch), new.declare(self.model(branch))
        note(f"{branch}: schema\n{text}")
        pins = pins_by_name(self.graph.snapshot(branch=branch).pins.values())
        if broken := new.nulls_in_required():
            with pytest.raises(IntegrityError) as caught:
                self.graph.schema.apply(text, branch=branch, engine="local")
            self.require_nulls(caught.value, old, new, broken)
            return
        result = self.graph.schema.apply(text, branch=branch, engine="local")
        assert self.graph.schema.plan(text, branch=branch).is_empty
        if result.commit_id is not None:
            self.learn(branch, new)
        self.require_same_tables(branch, pins, old)

    def require_nulls(
        self,
        failure: IntegrityError,
        old: GraphModel,
        new: GraphModel,
        broken: set[tuple[str, str, str]],
    ) -> None:
        """Every reported null is one; which are reported first, and by which name, is open."""
        assert set(failure.counts) == {Rule.REQUIRED}
        names = {one.name for graph in (old, new) for one in graph.types}
        assert {violation.type_name for violation in failure.violations} <= names
        ids = {str(violation.id) for violation in failure.violations}
        assert ids
        assert ids <= {id_ for _, _, id_ in broken}

    def require_same_tables(self, branch: str, pins: dict[str, Any], old: GraphModel) -> None:
        """A type whose columns are the same has the same table at the same version."""
        before = {type_.number: type_ for type_ in old.types}
        after = pins_by_name(self.graph.snapshot(branch=branch).pins.values())
        for type_ in self.model(branch).types:
            was = before.get(type_.number)
            if was and was.shape == type_.shape:
                old_pin, new_pin = pins[was.name], after[type_.name]
                assert (old_pin.location, old_pin.version) == (new_pin.location, new_pin.version)

    def create_branch(self, name: str) -> None:
        self.graph.branches.create(name)
        self.commits[name] = list(self.commits["main"])

    def require_agreement(self, branch: str) -> None:
        """The newest commit, any earlier one, and how they differ are as in the model."""
        commits = self.commits[branch]
        (head, now), (commit, then) = commits[-1], self.draws.pick(commits)
        assert read_all(self.graph, branch=branch) == now.named_rows()
        assert read_all(self.graph, commit=commit) == then.named_rows()
        rows = self.graph.diff(commit, head, engine="local").rows()
        found = [(str(row.op), row.type_name, row.id) for row in rows]
        assert len(set(found)) == len(found)
        assert set(found) == differences(then, now)


def to_table(type_: ModelType, row: Any) -> pa.Table:
    """The row as a load takes it."""
    columns = {one.name: pa.array([row[one.number]], ARROW[one.type]) for one in type_.properties}
    if type_.ends:
        columns |= {"from": pa.array([row[SRC]]), "to": pa.array([row[DST]])}
    return pa.table(columns)


def start(data: st.DataObject, folder: str) -> Walk:
    draws = Draws(data)
    model = draws.first()
    note(model.declare())
    walk = Walk(init(Path(folder) / "graph", model.declare()), draws)
    walk.learn("main", model)
    return walk


@given(st.data())
@some
def test_a_graph_is_what_its_writes_and_schema_changes_say(data):
    with tempfile.TemporaryDirectory() as folder:
        walk = start(data, folder)
        for _ in range(4):
            walk.write_row("main")
        for _ in range(data.draw(st.integers(1, 8), label="steps")):
            branch = walk.draws.pick(walk.commits)
            step = walk.draws.pick(["schema", "schema", "schema", "write", "delete", "branch"])
            if step == "schema":
                walk.change_schema(branch, walk.draws.changed(walk.model(branch)))
            elif step == "write":
                walk.write_row(branch)
            elif step == "delete":
                walk.delete_node(branch)
            elif len(walk.commits) < 2:
                walk.create_branch("draft")
            walk.require_agreement(branch)
        require_sound(walk.graph)
        for name in walk.commits:
            walk.require_agreement(name)


@given(st.data())
@some
def test_renaming_there_and_back_is_the_identity(data):
    with tempfile.TemporaryDirectory() as folder:
        walk = start(data, folder)
        for _ in range(3):
            walk.write_row("main")
        before, commit = walk.graph.snapshot(), walk.commits["main"][-1][0]
        there = walk.draws.renamed(walk.model("main"))
        back = change(there, walk.model("main").types)
        for model in (there, back):
            plan = walk.graph.schema.plan(model.declare(walk.model("main")))
            assert {str(step.cost) for step in plan.steps} <= {"metadata"}
            walk.change_schema("main", model)
            walk.require_agreement("main")
        after = walk.graph.snapshot()
        identities = {key: pin.identity for key, pin in before.pins.items()}
        assert {key: pin.identity for key, pin in after.pins.items()} == identities
        assert walk.graph.schema.diff(commit, "main").is_empty
        assert list(walk.graph.diff(commit, "main").rows()) == []
