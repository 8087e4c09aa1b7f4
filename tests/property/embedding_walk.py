"""Random histories of texts with vectors, against a model that shares no code with them.

Every vector that the provider of a walk makes is a number of its own, so that the vector of a row
says of which text, and by which model, it was made. The model of a graph is a dictionary of rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeConflictError
from omnigraph.model.names import MAIN

MODELS: Final = ("openai:one", "openai:two")
SOURCES: Final = (("title", "body"), ("body",), ("body", "title"))
WORDS: Final = ("ant", "bee", "cow", " ", "", None, "ant\nbee")
DIMENSION: Final = 4


@dataclass
class Origin:
    """What a vector was made from."""

    model: str
    text: str


class Registry:
    """Numbers for vectors: what each was made from, and how often each text was asked for."""

    def __init__(self) -> None:
        self.origins: list[Origin] = []
        self.asked: list[Origin] = []

    def vector_of(self, model: str, text: str) -> list[float]:
        """A vector that was never there before."""
        self.origins.append(Origin(model, text))
        return [float(len(self.origins)), 1.0, 0.0, 0.0]

    def provider_for(self, model: str, *_: object) -> RegistryProvider:
        """In place of the registry of providers."""
        return RegistryProvider(model, self)


@dataclass
class RegistryProvider:
    """Makes vectors whose origin can be looked up."""

    model: str
    registry: Registry
    batch_size: int = 3

    def embed(self, texts: Sequence[str], dimension: int) -> Any:
        """A new vector for each text."""
        assert dimension == DIMENSION
        self.registry.asked += [Origin(self.model, text) for text in texts]
        return np.array([self.registry.vector_of(self.model, text) for text in texts], np.float32)


STALE: Final = "stale"

Claim: TypeAlias = "tuple[str, str] | str | None"
"""What the graph says that a vector was made from: a model and a text, or that it is stale."""


@dataclass
class Row:
    """What the model knows of a row; `vector` is the number of its vector."""

    title: str | None = None
    body: str | None = None
    stars: int = 0
    vector: int | None = None
    claim: Claim = None

    def text(self, sources: Sequence[str]) -> str:
        """The text that its vector is to be of, by the rule of the guide."""
        parts = [(getattr(self, name) or "").strip() for name in sources]
        return "\n".join(part for part in parts if part)


@dataclass
class BranchModel:
    """A branch: its schema, and its rows by key."""

    model: str = MODELS[0]
    sources: tuple[str, ...] = SOURCES[0]
    rows: dict[str, Row] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """The text of a row."""
        return self.rows[key].text(self.sources)

    def state(self, key: str) -> str:
        """The state that a row has to be in."""
        row = self.rows[key]
        if row.vector is None:
            return "pending" if self.text(key) else "empty"
        return "current" if row.claim == (self.model, self.text(key)) else "stale"

    def states(self) -> Counter[str]:
        """How many rows are in each state."""
        return Counter(map(self.state, self.rows))

    @property
    def schema_text(self) -> str:
        """The schema of the branch."""
        sources = ", ".join(f'"{name}"' for name in self.sources)
        return f"""node Doc {{
          slug: String @key  title: String?  body: String?  stars: I64
          vector: Vector({DIMENSION}) @embed({sources}, model="{self.model}")
        }}"""


class EmbeddingWalk:
    """One history, on a graph and on its model.

    Attributes:
        branches: The model of each branch.
        past: Commits, with what they have.
        steps: What was done, for the message of a failure.
    """

    def __init__(self, path: Path, seed: int, registry: Registry) -> None:
        self.random = Random(seed)
        self.registry = registry
        self.branches: dict[str, BranchModel] = {MAIN: BranchModel()}
        self.graph = omnigraph.init(path, schema=self.branches[MAIN].schema_text)
        self.past: list[tuple[str, BranchModel]] = []
        self.steps: list[str] = []
        self._numbers = count()

    def run(self, length: int) -> None:
        """Take so many steps, then embed everything and read a commit of before."""
        for _ in range(length):
            name = self.random.choices(list(_STEPS), list(_STEPS.values()))[0]
            branch = self.random.choice(list(self.branches))
            self.steps.append(f"{name} on {branch}")
            getattr(self, f"_{name}")(branch)
            self.check(branch)
        for branch, model in self.branches.items():
            self._embed(branch, scope="waiting")
            self.check(branch)
            assert model.states().keys() <= {"current", "empty"}, self.steps
        commit_id, model = self.random.choice(self.past)
        self._compare(self.graph.at(commit=commit_id), model)

    def check(self, branch: str) -> None:
        """The rows, vectors and states of a branch are those of its model."""
        graph, model = self.graph.at(branch=branch), self.branches[branch]
        self._compare(graph, model)
        self.past.append((str(graph.snapshot().head.commit_id), deepcopy(model)))

    def _compare(self, graph: Graph, model: BranchModel) -> None:
        stored = read(graph)
        for row in stored.values():
            # The law, whatever was done: no vector is silently that of another text.
            if isinstance(row.claim, tuple):
                assert row.vector is not None, self.steps
                origin = self.registry.origins[row.vector - 1]
                made = (origin.model, origin.text)
                assert made == (row.claim[0], row.text(model.sources)), self.steps
        assert stored.keys() == model.rows.keys(), self.steps
        for key, row in stored.items():
            known = model.rows[key]
            assert (row.title, row.body, row.stars) == (known.title, known.body, known.stars)
            assert row.vector == known.vector, (key, row, known, self.steps)
        [status] = graph.embeddings.status()
        counted = {name: getattr(status, name) for name in ("current", "stale", "pending", "empty")}
        assert counted == {name: model.states()[name] for name in counted}, self.steps
        current = {key for key in model.rows if model.state(key) == "current"}
        assert find_near(graph) == current, self.steps

    # What writes do about vectors.

    def _settle(
        self, branch: str, keys: Iterable[str], when: str, before: Mapping[str, Row] | None = None
    ) -> None:
        """The vectors that a write leaves in its rows, by the rules of the guide.

        Args:
            before: The rows that an upsert replaced, whose vectors are taken if texts are the same.
        """
        model = self.branches[branch]
        stored = read(self.graph.at(branch=branch))
        missing = [key for key in keys if self._note(model, key)]
        ids = [before[key] for key in missing if key in before] if before else []
        for key in missing:
            row, made = model.rows[key], (model.model, model.text(key))
            reusable = {old.vector for old in ids if old.claim == made}
            if reusable:
                assert stored[key].vector in reusable, self.steps
            if reusable or when == "now":
                row.vector, row.claim = self._require_made(stored[key], made), made

    def _require_made(self, row: Row, made: tuple[str, str]) -> int:
        """The number of a vector, which must be of this model and this text."""
        assert row.vector is not None, self.steps
        origin = self.registry.origins[row.vector - 1]
        assert (origin.model, origin.text) == made, self.steps
        return row.vector

    @staticmethod
    def _note(model: BranchModel, key: str) -> bool:
        """Correct what is claimed of a row that is written; whether it misses a vector."""
        row, text = model.rows[key], model.text(key)
        if row.vector is None:
            row.claim = None
        elif isinstance(row.claim, tuple) and row.claim[1] == text:
            return False
        elif text:
            row.claim = STALE
        else:
            row.vector = row.claim = None
        return bool(text)

    # Steps.

    def _word(self) -> str | None:
        return self.random.choice(WORDS)

    def _when(self) -> str:
        return self.random.choice(["now", "later"])

    def _draw_row(self, model: BranchModel) -> Row:
        """A row to load; some have vectors of their own."""
        row = Row(self._word(), self._word(), self.random.randrange(9))
        text = row.text(model.sources)
        if text and self.random.random() < 0.2:
            self.registry.vector_of(model.model, text)
            row.vector, row.claim = len(self.registry.origins), (model.model, text)
        return row

    def _keys(self, branch: str, most: int) -> list[str]:
        keys = sorted(self.branches[branch].rows)
        return self.random.sample(keys, min(len(keys), self.random.randint(1, most)))

    def _insert(self, branch: str) -> None:
        when, key = self._when(), f"k{next(self._numbers)}"
        row = Row(self._word(), self._word())
        parameters = {"slug": key, "title": row.title, "body": row.body}
        self.graph.at(branch=branch).mutate(_INSERT, parameters, embed=when)
        self.branches[branch].rows[key] = row
        self._settle(branch, [key], when)

    def _update(self, branch: str) -> None:
        name = self.random.choice(["title", "body", "stars"])
        value = self.random.randrange(9) if name == "stars" else self._word()
        kind = "I64" if name == "stars" else "String?"
        text = f"""query q($slug: String, $value: {kind}) {{
          update Doc set {{ {name}: $value }} where slug = $slug }}"""
        for key in self._keys(branch, 1):
            when = self._when()
            self.graph.at(branch=branch).mutate(text, {"slug": key, "value": value}, embed=when)
            row = self.branches[branch].rows[key]
            setattr(row, name, value)
            self._settle(branch, [key], when)

    def _delete(self, branch: str) -> None:
        for key in self._keys(branch, 1):
            self.graph.at(branch=branch).mutate(_DELETE, {"slug": key})
            del self.branches[branch].rows[key]

    def _load(self, branch: str, mode: str, keys: Sequence[str]) -> None:
        model, when = self.branches[branch], self._when()
        before = {key: row for key, row in deepcopy(model.rows).items() if key in keys}
        rows = {key: self._draw_row(model) for key in keys}
        for key in set(before) & set(rows):
            if self.random.random() < 0.5:
                # Unchanged texts keep their vectors.
                rows[key] = Row(before[key].title, before[key].body, self.random.randrange(9))
        source = [_to_input(key, row) for key, row in rows.items()]
        self.graph.at(branch=branch).load({"Doc": source}, mode=mode, embed=when)
        model.rows = {**({} if mode == "overwrite" else model.rows), **rows}
        given = {key for key, row in rows.items() if row.vector is not None}
        written = [key for key in keys if key not in given]
        self._settle(branch, written, when, before if mode == "merge" else None)

    def _append(self, branch: str) -> None:
        keys = [f"k{next(self._numbers)}" for _ in range(self.random.randint(1, 4))]
        self._load(branch, "append", keys)

    def _upsert(self, branch: str) -> None:
        self._load(branch, "merge", [*self._keys(branch, 4), f"k{next(self._numbers)}"])

    def _overwrite(self, branch: str) -> None:
        self._load(branch, "overwrite", [*self._keys(branch, 3), f"k{next(self._numbers)}"])

    def _embed(self, branch: str, scope: str | None = None) -> None:
        model = self.branches[branch]
        scope = scope or self.random.choice(["waiting", "pending", "stale", "all"])
        wanted = {"waiting": {"stale", "pending"}, "all": {"stale", "pending", "current"}}
        chosen = wanted.get(scope, {scope})
        keys = [key for key in model.rows if model.state(key) in chosen]
        texts = {model.text(key) for key in keys} - {""}
        first = len(self.registry.asked)
        self.graph.at(branch=branch).embeddings.run(scope=scope)
        asked = [(origin.model, origin.text) for origin in self.registry.asked[first:]]
        # Each text once, and none that has its vector.
        assert sorted(asked) == sorted((model.model, text) for text in texts), self.steps
        stored = read(self.graph.at(branch=branch))
        for key in keys:
            row, text = model.rows[key], model.text(key)
            row.vector = row.claim = None
            if text:
                made = (model.model, text)
                row.vector, row.claim = self._require_made(stored[key], made), made

    def _change_model(self, branch: str) -> None:
        model = self.branches[branch]
        model.model = self.random.choice(MODELS)
        self.graph.schema.apply(model.schema_text, branch=branch)

    def _change_sources(self, branch: str) -> None:
        model = self.branches[branch]
        before, model.sources = model.sources, self.random.choice(SOURCES)
        self.graph.schema.apply(model.schema_text, branch=branch)
        if model.sources != before:
            for row in model.rows.values():
                row.claim = None if row.vector is None else STALE

    def _create(self, branch: str) -> None:
        if len(self.branches) < _BRANCHES_MAX:
            name = f"b{next(self._numbers)}"
            self.graph.branches.create(name, branch=branch)
            self.branches[name] = deepcopy(self.branches[branch])

    def _merge(self, branch: str) -> None:
        source = self.random.choice(list(self.branches))
        if source == branch:
            return
        resolve = self.random.choice(["ours", "theirs"])
        try:
            self.graph.merge(source, into=branch, resolve=resolve)
        except MergeConflictError:
            # Both changed what vectors are made from.
            return
        # What a merge does to texts is held to account elsewhere; here, what it says of vectors.
        graph, model = self.graph.at(branch=branch), self.branches[branch]
        match = re.search(r'@embed\((.*?), model="(.*?)"\)', graph.schema.show().text)
        assert match is not None
        model.sources = tuple(re.findall(r'"(\w+)"', match[1]))
        model.model = match[2]
        model.rows = read(graph)
        for row in model.rows.values():
            if isinstance(row.claim, tuple):
                row.claim = (row.claim[0], row.text(model.sources))
            elif row.vector is not None:
                row.claim = STALE

    def _optimize(self, branch: str) -> None:
        self.graph.at(branch=branch).optimize()


_BRANCHES_MAX: Final = 3
_STEPS: Final = {
    "insert": 3,
    "update": 8,
    "delete": 1,
    "append": 3,
    "upsert": 5,
    "overwrite": 1,
    "embed": 4,
    "change_model": 2,
    "change_sources": 1,
    "create": 2,
    "merge": 5,
    "optimize": 1,
}
"""What is done how often; each is a method."""

_INSERT: Final = """query q($slug: String, $title: String?, $body: String?) {
  insert Doc { slug: $slug title: $title body: $body stars: 0 } }"""
_DELETE: Final = "query q($slug: String) { delete Doc where slug = $slug }"
_READ: Final = """query q() { match { $d: Doc }
  return { $d.slug $d.title $d.body $d.stars $d.vector $d.vector_embedded } }"""
_NEAR: Final = """query q($v: Vector(4)) { match { $d: Doc }
  return { $d.slug nearest($d.vector, $v) as distance }
  order { nearest($d.vector, $v) } limit 1000 }"""


def read(graph: Graph) -> dict[str, Row]:
    """The rows of a graph by key. Of the text that a vector is claimed to be of, only the model."""
    rows: dict[str, Row] = {}
    for key, title, body, stars, vector, note in map(dict.values, graph.query(_READ).rows()):
        claim: Claim = note
        if note is not None and note != STALE:
            claim = (note.split(" ")[0], "")
        rows[key] = Row(title, body, stars, None if vector is None else int(vector[0]), claim)
    return rows


def find_near(graph: Graph) -> set[str]:
    """The rows that a search by vectors finds."""
    rows = graph.query(_NEAR, {"v": [1.0] * DIMENSION}).rows()
    return {row["d.slug"] for row in rows if row["distance"] is not None}


def _to_input(key: str, row: Row) -> dict[str, Any]:
    given = {} if row.vector is None else {"vector": [float(row.vector), 1.0, 0.0, 0.0]}
    return {"slug": key, "title": row.title, "body": row.body, "stars": row.stars, **given}
