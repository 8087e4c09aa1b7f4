"""Walks through random histories of a graph with cleanups, on the graph and on its model.

Writers and cleanups are cut off at failpoints, or overtaken there by each other. After each cleanup
everything that has to be kept reads as before, and the rest says that it expired.
"""

import os
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import pytest

import omnigraph
from omnigraph.clock import encode_ulid
from omnigraph.errors import (
    BranchNotFoundError,
    CommitLetGoError,
    CommitNotFoundError,
    FeedGapError,
    MergeConflictError,
    NotAllowedError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup.results import CleanupResult
from omnigraph.maintenance.purge.results import PurgeResult
from omnigraph.model.commits import SAME_ROWS_KINDS, Commit
from tests.property.retention_disk import find_leftovers, is_of_refs, purged_in
from tests.property.retention_model import MAIN, EndedBranch, KnownCommit, Model, Rules, State
from tests.property.retention_reads import (
    BASIC_TYPES,
    READ_PEOPLE,
    count_edges,
    names_of,
    read_names,
    schema_text,
)
from tests.support.clocks import LaterClock
from tests.support.crashes import Cut, sleeping_at
from tests.support.plain_lance import HINT, RECOVERIES, Place, PlainGraph

NAMES: Final = ("q", "r", "s", "t")
MINUTE: Final = timedelta(minutes=1)
LONG: Final = timedelta(days=4)
"""Longer than any staged file is kept, and than any grace."""


def _points(*parts: str) -> tuple[Failpoint, ...]:
    return tuple(point for point in Failpoint if point.partition(".")[0] in parts)


WRITE_POINTS: Final = _points("write", "claim", "apply", "publish")
BRANCH_POINTS: Final = _points("branch")
TAG_POINTS: Final = _points("tag")
CLEANUP_POINTS: Final = _points("cleanup")
HITS_BEFORE_MAX: Final = 3

RULES: Final = (
    Rules(),
    Rules(keep_commits=1),
    Rules(keep_commits=3),
    Rules(older_than=timedelta(days=1)),
    Rules(older_than=timedelta(days=3)),
    Rules(keep_commits=2, older_than=timedelta(hours=10)),
    Rules(keep_commits=1, grace=timedelta(days=1)),
    Rules(keep_commits=1, grace=timedelta(minutes=2)),
)


PURGE_RULES: Final = (Rules(keep_commits=1), Rules(keep_commits=1, grace=timedelta(minutes=2)))


class MovingClock(LaterClock):
    """The machine's clock, moved on by the test; its ids move with it."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self._newest = 0

    def advance(self, duration: timedelta) -> None:
        self._ahead += duration

    def ulid(self) -> str:
        fresh = int(self.now().timestamp() * 1000) << 80 | secrets.randbits(80)
        self._newest = max(fresh, self._newest + 1)
        return encode_ulid(self._newest)


@dataclass
class Change:
    """A change of a branch in progress.

    Attributes:
        after: What the branch has when it is done.
        merged: The other parent of its commit.
        landed: How many commits it has made.
    """

    branch: str
    after: State
    merged: str | None = None
    landed: int = 0


@dataclass
class Walk:
    """One history: a graph, and the model of it.

    Attributes:
        handles: Handles of writers that stay open.
        held: Handles of readers on commits, and those commits.
        counts: How often each step was taken.
    """

    uri: Path
    random: Random
    clock: MovingClock = field(default_factory=MovingClock)
    model: Model = field(default_factory=Model)
    handles: list[Graph] = field(default_factory=list)
    held: list[tuple[Graph, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _schemas: dict[str, str] = field(default_factory=dict)
    _aged: dict[Path, float] = field(default_factory=dict)
    _number: int = 0
    _branch_number: int = 0
    _is_overtaken: bool = False
    _was_overtaken: bool = False
    _outer: Rules | None = None
    _ending: str | None = None

    def __post_init__(self) -> None:
        state = State(types=BASIC_TYPES)
        first = omnigraph.init(self.uri, schema_text(state), clock=self.clock)
        if self.random.random() < 0.4:
            first.settings.set("maintenance.optimize", "off")
        self.handles = [first, omnigraph.open(self.uri, clock=self.clock)]
        self.model.numbers[MAIN] = 0
        self._add(Change(MAIN, state), first.commits.list()[0])
        self._write_rows(MAIN, "P", ["P0", "P00"])

    # Facts that the graph states

    @property
    def graph(self) -> Graph:
        return self.random.choice(self.handles)

    def _add(self, change: Change, commit: Commit) -> None:
        """Add a commit to the model, which has to be what the change says."""
        plain = PlainGraph(str(self.uri))
        place = (commit.ref, commit.manifest_version)
        assert plain.ids(place) == change.after.rows, commit
        self.model.commits[commit.commit_id] = KnownCommit(
            str(commit.commit_id),
            tuple(map(str, commit.parents)),
            self.model.numbers[change.branch],
            commit.created_at,
            place,
            plain.digest(place),
            change.after,
        )
        self._schemas[commit.commit_id] = commit.schema_digest
        self.model.tips[change.branch] = commit.commit_id

    def _learn(self, change: Change) -> None:
        """Add the commits of a change: its own, maintenance after it, and recoveries."""
        new = []
        for commit in self.graph.commits.list(branch=change.branch):
            if commit.commit_id in self.model.commits:
                break
            new.append(commit)
        for commit in reversed(new):
            before = self.model.tip(change.branch)
            if commit.operation in SAME_ROWS_KINDS:
                assert commit.parents == (before.commit_id,)
                self._add(Change(change.branch, before.state), commit)
                continue
            merged = () if change.merged is None else (change.merged,)
            assert commit.parents == (before.commit_id, *merged)
            self._add(change, commit)
            change.landed += 1

    def _age_files(self) -> None:
        """Let what was written since be as old as the clock says, not as the machine says."""
        now = self.clock.now().timestamp()
        for path in self._files_with_ages():
            if self._aged.get(path) != path.stat().st_mtime:
                os.utime(path, (now, now))
                self._aged[path] = path.stat().st_mtime

    def _files_with_ages(self) -> Iterator[Path]:
        """The files of which a cleanup asks the age."""
        for folder in ("nodes", "edges", "__manifest", "__schemas", RECOVERIES):
            paths = (self.uri / folder).rglob("*")
            yield from (path for path in paths if path.is_file() and path.name != HINT)

    # Steps

    def step(self) -> str:
        """Take one random step, and return what it was."""
        steps: dict[Callable[[], str | None], int] = {
            self._write: 30,
            self._merge: 14,
            self._create: 12,
            self._delete: 7,
            self._tag: 7,
            self._untag: 3,
            self._hold: 6,
            self._maintain: 7,
            self._change_schema: 5,
            self._purge: 4,
            self._reopen: 2,
            self._clean: 14,
            self._settle: 1,
        }
        (chosen,) = self.random.choices(tuple(steps), tuple(steps.values()))
        self.clock.advance(self._duration())
        done = chosen()
        self._age_files()
        self.counts[chosen.__name__] += done is not None
        return f"{chosen.__name__} {done or 'nothing'}"

    def _duration(self) -> timedelta:
        return MINUTE * self.random.choice([0, 1, 10, 50, 70, 600, 1440]) * self.random.random()

    def _fresh(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _branch(self) -> str:
        return self.random.choice(sorted(self.model.tips))

    def _write(self) -> str:
        branch = self._branch()
        state = self.model.tip(branch).state
        writes: list[Callable[[str], str]] = [
            self._insert_person,
            partial(self._load, mode="append"),
            partial(self._load, mode="merge"),
            partial(self._load, mode="overwrite"),
        ]
        if state.rows_of("P"):
            writes += [self._update_person, self._insert_edge]
        if state.rows_of("C"):
            writes.append(partial(self._delete_row, "C"))
        if state.rows_of("K"):
            writes.append(partial(self._delete_row, "K"))
        extra = sorted(state.current_types - BASIC_TYPES)
        if extra:
            writes.append(partial(self._insert_into, self.random.choice(extra)))
        return self.random.choice(writes)(branch)

    def _insert_person(self, branch: str) -> str:
        return self._write_rows(branch, "P", [self._fresh("P") for _ in range(2)])

    def _insert_into(self, type_name: str, branch: str) -> str:
        return self._write_rows(branch, type_name, [self._fresh(type_name)])

    def _write_rows(self, branch: str, type_name: str, ids: list[str]) -> str:
        text = " ".join(f'insert {type_name} {{ name: "{row_id}" }}' for row_id in ids)
        return self._mutate(branch, text, inserted={(type_name, row_id) for row_id in ids})

    def _update_person(self, branch: str) -> str:
        name = self.random.choice(self.model.tip(branch).state.rows_of("P"))
        number = self.random.randint(0, 1 << 30)
        return self._mutate(branch, f'update P set {{ n: {number} }} where name = "{name}"')

    def _delete_row(self, type_name: str, branch: str) -> str:
        row_id = self.random.choice(self.model.tip(branch).state.rows_of(type_name))
        column = "name" if type_name == "C" else "id"
        text = f'delete {type_name} where {column} = "{row_id}"'
        return self._mutate(branch, text, deleted={(type_name, row_id)})

    def _mutate(
        self,
        branch: str,
        text: str,
        *,
        inserted: Collection[tuple[str, str]] = (),
        deleted: Collection[tuple[str, str]] = (),
    ) -> str:
        change = self._changed(branch, inserted, deleted)
        query = f"query q() {{ {text} }}"
        return f"{text} on {branch}" + self._perform(
            change, lambda: self.graph.mutate(query, branch=branch)
        )

    def _changed(
        self,
        branch: str,
        inserted: Iterable[tuple[str, str]],
        deleted: Iterable[tuple[str, str]],
    ) -> Change:
        before = self.model.tip(branch).state
        return Change(
            branch,
            replace(
                before,
                inserted=before.inserted | set(inserted),
                deleted=before.deleted | set(deleted),
            ),
        )

    def _insert_edge(self, branch: str) -> str:
        ends = self.model.tip(branch).state.rows_of("P")
        row_id = self._fresh("K")
        source, target = self.random.choices(ends, k=2)
        row = {"id": row_id, "src": source, "dst": target, "w": self._number}
        change = self._changed(branch, {("K", row_id)}, ())
        return f"load {row_id} to {branch}" + self._perform(
            change, lambda: self.graph.load({"K": [row]}, branch=branch, index=False)
        )

    def _load(self, branch: str, *, mode: str) -> str:
        """Load cities; a merge replaces one that is there, and an overwrite replaces all."""
        old = self.model.tip(branch).state.rows_of("C")
        new = [self._fresh("C") for _ in range(self.random.randint(1, 4))]
        names = new if mode != "merge" else new + old[:1]
        rows = [{"name": name, "kind": self.random.choice(["a", "b"])} for name in names]
        gone = {("C", name) for name in old} if mode == "overwrite" else set()
        change = self._changed(branch, {("C", name) for name in new}, gone)
        is_indexed = self.random.random() < 0.4
        return f"{mode} {new} to {branch}" + self._perform(
            change,
            lambda: self.graph.load({"C": rows}, mode=mode, branch=branch, index=is_indexed),
        )

    def _change_schema(self) -> str:
        branch = self._branch()
        before = self.model.tip(branch).state
        added = sorted(before.properties - before.lost)
        extra = sorted(before.current_types - BASIC_TYPES)
        choices = [
            replace(before, properties=before.properties | {("P", self._fresh("x"))}),
            replace(before, properties=before.properties | {("C", self._fresh("y"))}),
            replace(before, types=before.types | {self._fresh("T")}),
        ]
        if added:
            choices.append(replace(before, lost=before.lost | {self.random.choice(added)}))
        if extra:
            choices.append(replace(before, dropped=before.dropped | {self.random.choice(extra)}))
        change = Change(branch, self.random.choice(choices))
        text = schema_text(change.after)
        return f"of {branch} to {' '.join(text.split())}" + self._perform(
            change, lambda: self.graph.schema.apply(text, branch=branch)
        )

    def _maintain(self) -> str:
        branch = self._branch()
        works: dict[str, Callable[[], object]] = {
            "optimize": lambda: self.graph.optimize(branch=branch),
            "index": lambda: self.graph.ensure_indices(branch=branch),
            "index anew": lambda: self.graph.ensure_indices(branch=branch, rebuild=True),
        }
        name = self.random.choice(list(works))
        change = Change(branch, self.model.tip(branch).state)
        return f"{name} {branch}" + self._perform(change, works[name], lands=0)

    def _purge(self) -> str:
        """Purge what a branch has dropped: other commits stay, and it is gone once that is done."""
        branch = self._branch()
        dropped = self.model.tip(branch).state.gone
        holders = self.model.holders(dropped)
        rules = self.random.choice(PURGE_RULES)
        others = self.model.readable() - holders - self.model.ended_with(holders)
        files = PlainGraph(str(self.uri)).files()
        results: list[PurgeResult] = []

        def purge() -> None:
            results.append(
                self.graph.schema.purge(
                    branch=branch, keep_commits=rules.keep_commits, grace=rules.grace
                )
            )

        try:
            how = self._meet(purge, (*WRITE_POINTS, *CLEANUP_POINTS))
        except NotAllowedError as refused:
            assert holders, "nobody has it, and somebody needs it"
            if not self._was_overtaken:
                assert PlainGraph(str(self.uri)).files() == files, "a refusal changed something"
            how = f" refused: {refused.details['needs']}"
        for name in self.model.tips:
            self._learn(Change(name, self.model.tip(name).state))
        self._check_commits((others - self.model.gone) | (self.model.named() - self.model.gone))
        if results and results[0].is_done and not how:
            own = self.model.had(branch, dropped)
            self.counts["purges done"] += bool(self.model.holders(own))
            left = [self.model.commits[each] for each in self.model.readable()]
            held = purged_in(self.uri, own, left)
            assert not held, f"{held} have what was purged"
        self._check_readers()
        return f"{branch} by {rules}{how}"

    def _merge(self) -> str | None:
        if len(self.model.tips) < 2:
            return None
        source, into = self.random.sample(sorted(self.model.tips), 2)
        ours, theirs = self.model.tip(into), self.model.tip(source)
        change = Change(into, ours.state.merged(theirs.state), merged=theirs.commit_id)
        text = f"{source} into {into}"
        try:
            text += self._perform(
                change,
                lambda: self.graph.merge(source, into=into, resolve="theirs"),
                lands=None,
            )
        except CommitLetGoError as refused:
            base = str(refused.details["commit_id"])
            assert base in self.model.bases_of(ours.commit_id, theirs.commit_id)
            self._check_commits(set())
            assert base in self.model.gone
            return f"{text}: the base expired"
        except MergeConflictError:
            assert ours.state.dropped != theirs.state.dropped
            return f"{text}: conflict"
        return text

    def _create(self) -> str | None:
        free = [name for name in NAMES if name not in self.model.tips]
        if not free:
            return None
        name = self.random.choice(free)
        self._branch_number += 1
        if self.random.random() < 0.5:
            source = self._branch()
            start = self.model.tips[source]
            create = lambda: self.graph.branches.create(name, branch=source)  # noqa: E731
        else:
            start = self.random.choice(sorted(self.model.known()))
            create = lambda: self.graph.branches.create(name, commit=start)  # noqa: E731
        how = self._name(start, create, BRANCH_POINTS)
        if name in self.graph.branches.list():
            self.model.tips[name] = start
            self.model.numbers[name] = self._branch_number
        return f"{name} at {start}: {how}"

    def _name(
        self, commit_id: str, create: Callable[[], object], points: tuple[Failpoint, ...]
    ) -> str:
        """Give a commit a name; if it expired, that has to be refused."""
        if commit_id in self.model.gone:
            with pytest.raises(CommitLetGoError):
                create()
            return "let go"
        try:
            return self._meet(create, points) or "done"
        except CommitLetGoError:
            assert self._is_overtaken or self._was_overtaken, "it was not let go"
            self._check_commits(set())
            assert commit_id in self.model.gone
            return "let go meanwhile"

    def _delete(self) -> str | None:
        others = [name for name in sorted(self.model.tips) if name != MAIN]
        if not others:
            return None
        name = self.random.choice(others)
        self._ending = name
        try:
            how = self._meet(lambda: self.graph.branches.delete(name), BRANCH_POINTS)
        except NotAllowedError:
            self._ending = None
            return f"{name}: others build on it"
        if name in self.graph.branches.list():
            assert how, "it is still there"
            self.clock.advance(MINUTE)
            try:
                self.graph.branches.delete(name)
            except BranchNotFoundError:
                how += ", found finished"
        self._ending = None
        tip = self.model.tips.pop(name)
        self.model.ended[self.model.numbers.pop(name)] = EndedBranch(tip, self.clock.now())
        return f"{name} {how}"

    def _tag(self) -> str:
        name = self._fresh("tag")
        commit_id = self.random.choice(sorted(self.model.known()))
        create = lambda: self.graph.tags.create(name, commit=commit_id)  # noqa: E731
        how = self._name(commit_id, create, TAG_POINTS)
        if name in {tag.name for tag in self.graph.tags.list()}:
            self.model.tags[name] = commit_id
        return f"{name} at {commit_id}: {how}"

    def _untag(self) -> str | None:
        if not self.model.tags:
            return None
        name = self.random.choice(sorted(self.model.tags))
        self.graph.tags.delete(name)
        del self.model.tags[name]
        return name

    def _hold(self) -> str:
        commit_id = self.random.choice(
            [*self.model.tips.values(), *sorted(self.model.readable())[-3:]]
        )
        reader = omnigraph.open(self.uri, read_only=True, clock=self.clock).at(commit=commit_id)
        if self.random.random() < 0.5:
            state = self.model.commits[commit_id].state
            assert read_names(reader) == names_of(state)
            assert count_edges(reader) == len(state.rows_of("K"))
        self.held.append((reader, commit_id))
        return commit_id

    def _reopen(self) -> str:
        place = self.random.randrange(len(self.handles))
        self.handles[place] = omnigraph.open(self.uri, clock=self.clock)
        return str(place)

    # Incidents

    def _perform(
        self, change: Change, action: Callable[[], object], *, lands: int | None = 1
    ) -> str:
        """Do a change, possibly with an incident, and add its commits to the model.

        Args:
            lands: How many commits of its own it makes; None if that is up to the graph.
        """
        how = self._meet(action, WRITE_POINTS, change)
        self._learn(change)
        if lands is None and not how:
            lands = int(change.after != self.model.tip(change.branch).state or change.landed > 0)
        if how.startswith(" crashed"):
            assert change.landed <= 1
        elif lands is not None:
            assert change.landed == lands, change
        return how

    def _meet(
        self,
        action: Callable[[], object],
        points: tuple[Failpoint, ...],
        change: Change | None = None,
    ) -> str:
        """Do something, which a crash or a cleanup may meet in the middle.

        Returns:
            What happened; empty if nothing did.
        """
        self._was_overtaken = False
        chance = self.random.random()
        if self._is_overtaken or chance > 0.22:
            action()
            return ""
        cut = Cut(self.random.choice(points), self.random.randint(1, HITS_BEFORE_MAX))
        if chance < 0.1:
            with self._overtaken(cut, lambda: self._clean_beside(change)):
                action()
            self.counts["overtaken by a cleanup"] += self._was_overtaken
            return f" overtaken at {cut}" if self._was_overtaken else ""
        try:
            with arm(cut.point, after_hits=cut.nth - 1):
                action()
        except SimulatedCrash:
            self.counts["crashes"] += 1
            self._after_crash(change)
            return f" crashed at {cut}"
        return ""

    @contextmanager
    def _overtaken(self, cut: Cut, meanwhile: Callable[[], object]) -> Iterator[None]:
        def work() -> None:
            self._is_overtaken = self._was_overtaken = True
            try:
                meanwhile()
                self._age_files()
            finally:
                self._is_overtaken = False

        with sleeping_at(cut, work):
            yield

    def _clean_beside(self, change: Change | None) -> None:
        """A cleanup while a change is in progress, or after it was cut off."""
        if change is not None:
            self._learn(change)
        self._age_files()
        rules = self.random.choice(RULES)
        required = self._required(rules)
        self.clean(rules)
        self._check_commits(required)

    def _required(self, rules: Rules) -> set[str]:
        """What has to be kept, whether or not the branch that is being deleted is gone by now."""
        now = self.clock.now()
        kept = self.model.must_keep(rules, now)
        if self._ending is not None:
            without = copy(self.model)
            without.tips = {name: tip for name, tip in without.tips.items() if name != self._ending}
            without.ended = without.ended | {-1: EndedBranch(self.model.tips[self._ending], now)}
            kept &= without.must_keep(rules, now)
        return kept

    def _after_crash(self, change: Change | None) -> None:
        """Others go on; in the end somebody opens the graph, which recovers the write."""
        if self.random.random() < 0.4:
            self._clean_beside(change)
        self._reopen()
        if change is not None:
            self._learn(change)

    # Cleanups

    def _clean(self) -> str:
        rules = self.random.choice(RULES)
        now = self.clock.now()
        required = self.model.must_keep(rules, now)
        chance = self.random.random()
        text = f"{rules}"
        if self._outer is not None:
            # The cleanup that it overtakes lets go by rules of its own.
            required &= self.model.must_keep(self._outer, now)
            self.clean(rules)
            self._check_commits(required)
            return text
        cut = Cut(self.random.choice(CLEANUP_POINTS), self.random.randint(1, HITS_BEFORE_MAX))
        if chance < 0.25:
            try:
                with arm(cut.point, after_hits=cut.nth - 1):
                    self.clean(rules)
            except SimulatedCrash:
                self.counts["cleanups cut off"] += 1
                text += f" crashed at {cut}"
            self._check_commits(required)
        elif chance < 0.5:
            text += self._clean_overtaken(rules, cut, required)
        else:
            may = self.model.may_keep(rules, now)
            self._clean_as_previewed(rules)
            self._check_commits(required, may)
        self._check_readers()
        return text

    def _clean_overtaken(self, rules: Rules, cut: Cut, required: set[str]) -> str:
        steps = [
            self._write,
            self._merge,
            self._create,
            self._delete,
            self._tag,
            self._untag,
            self._maintain,
            self._change_schema,
            self._clean,
        ]
        inner = self.random.choice(steps)
        done: list[str | None] = []
        self._was_overtaken = False
        self._outer = rules
        with self._overtaken(cut, lambda: done.append(inner())):
            self.clean(rules)
        self._outer = None
        still = self.model.must_keep(rules, self.clock.now())
        self._check_commits((required & still) | (self.model.named() - self.model.gone))
        if done:
            self.counts[f"cleanup overtaken by {inner.__name__}"] += 1
        return f" overtaken at {cut} by {inner.__name__} {done}" if done else ""

    def clean(self, rules: Rules, *, dry_run: bool = False) -> CleanupResult:
        if not dry_run:
            self.model.forget_unnamed(rules, self.clock.now())
        return self.graph.cleanup(
            keep_commits=rules.keep_commits,
            older_than=rules.older_than,
            grace=rules.grace,
            dry_run=dry_run,
        )

    def _clean_as_previewed(self, rules: Rules) -> CleanupResult:
        plain = PlainGraph(str(self.uri))
        before = plain.files()
        planned = self.clean(rules, dry_run=True)
        assert plain.files() == before, "a preview changed something"
        done = self.clean(rules)
        assert done == planned, "what was done is not what the preview showed"
        assert done.troubles == (), done.troubles
        gone = before.keys() - plain.files().keys()
        size = sum(before[path] for path in gone if not path.startswith("__retired"))
        assert size == planned.size, (gone, planned)
        for table in planned.versions:
            own = [path for path in gone if path.startswith(f"{table.location}/")]
            own = [path for path in own if not is_of_refs(path, planned)]
            assert len(own) == table.versions + table.files, (table, own)
        return done

    def _check_commits(self, required: set[str], may: set[str] | None = None) -> None:
        """What must be kept reads as before; the rest says that it expired, or reads so, too."""
        plain = PlainGraph(str(self.uri))
        fresh = omnigraph.open(self.uri, read_only=True, clock=self.clock)
        shown = {str(commit.commit_id): commit for commit in fresh.commits.every()}
        for commit_id in sorted(self.model.known() - shown.keys()):
            # Those of a branch that is being deleted may have lost their name by now.
            with suppress(CommitNotFoundError) if self._ending else nullcontext():
                shown[commit_id] = fresh.commits.show(commit_id)
        nameable = self.model.known() & shown.keys()
        known = nameable | required
        marked = fresh.commits.let_go(shown.values()).keys() & nameable
        assert marked.isdisjoint(required), f"{marked & required} expired, and are needed"
        if marked and may is not None:
            self._check_gone(fresh, self.random.choice(sorted(marked)))
        for commit_id in sorted(marked):
            # A cleanup that was cut off may have recorded it, and not removed it.
            with suppress(CommitLetGoError):
                fresh.snapshot(commit=commit_id)
                place, digest = self._place_and_digest(commit_id)
                assert may is None, f"{commit_id} expired, and can be read"
                assert plain.digest(place) == digest, f"{commit_id} changed"
        for commit_id in sorted(known - marked):
            commit = self.model.commits[commit_id]
            assert commit_id not in self.model.gone, f"{commit_id} expired, and came back"
            assert may is None or commit_id in may, f"{commit_id} is kept, and nothing needs it"
            assert plain.digest(commit.place) == commit.digest, f"{commit_id} changed"
        self.model.gone |= marked

    def _place_and_digest(self, commit_id: str) -> tuple[Place, str]:
        commit = self.model.commits[commit_id]
        return commit.place, commit.digest

    def _check_gone(self, fresh: Graph, commit_id: str) -> None:
        """Every way to a commit that expired says so."""
        for read in (
            lambda: fresh.at(commit=commit_id).entity("P", "P0"),
            lambda: fresh.query(READ_PEOPLE, commit=commit_id),
            lambda: fresh.diff(commit_id, MAIN),
            lambda: fresh.schema.show(commit=commit_id),
        ):
            with pytest.raises(CommitLetGoError):
                read()
        line = list(self.model.first_parents(self.model.tips[MAIN]))
        after = {older: newer for newer, older in pairwise(line)}
        if commit_id in after:
            # Maintenance that follows it has the same rows, and is as good a place to go on from.
            digests = {self.model.commits[each].digest for each in (commit_id, after[commit_id])}
            with pytest.raises(FeedGapError) if len(digests) > 1 else suppress(FeedGapError):
                fresh.changes(after=commit_id)

    def _check_readers(self) -> None:
        """Who holds a commit that has a name reads on, or is told that it expired."""
        still = []
        for reader, commit_id in self.held:
            has_to = commit_id in self.model.readable()
            try:
                names = read_names(reader)
                edge_count = count_edges(reader)
            except (CommitLetGoError, CommitNotFoundError):
                assert not has_to, f"the reader of {commit_id} cannot read on"
                continue
            state = self.model.commits[commit_id].state
            assert names == names_of(state), commit_id
            assert edge_count == len(state.rows_of("K")), commit_id
            still.append((reader, commit_id))
        self.held = still[-6:]

    # The end

    def _settle(self) -> str:
        """Much later two cleanups leave only what is needed."""
        self.clock.advance(LONG)
        self._reopen()
        rules = self.random.choice(RULES)
        required = self.model.must_keep(rules, self.clock.now())
        may = self.model.may_keep(rules, self.clock.now())
        self._clean_as_previewed(rules)
        self._check_commits(required, may)
        self._clean_as_previewed(Rules())
        again = self._clean_as_previewed(Rules())
        assert again.is_empty, again
        leftovers = find_leftovers(self.uri, self.model, self._schemas)
        assert not leftovers, sorted(leftovers)
        return f"{rules}"

    def finish(self) -> None:
        """Everything is as the model says, and after two cleanups no file is left over."""
        self._settle()
        self._check_merges()
        report = self.graph.check(history=True)
        assert report.is_sound, report.findings

    def _check_merges(self) -> None:
        """Branches whose bases are kept can be merged."""
        for source in self.model.tips:
            for into in self.model.tips.keys() - {source}:
                tips = self.model.tips[into], self.model.tips[source]
                if not self.model.bases_of(*tips) & self.model.gone:
                    self.graph.merge(source, into=into, resolve="theirs", dry_run=True)
