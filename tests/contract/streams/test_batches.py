"""Batches of a stream on one graph: what other writers, branches and cleanups make of them."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from shutil import copytree
from threading import Barrier, Thread

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.choices import Mode, OnDuplicate
from omnigraph.clock import SystemClock
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ErrorCode,
    IntegrityError,
    InvalidInputError,
    InvalidParameterError,
    NotFoundError,
    StreamError,
    TypeNotFoundError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.limits import LEASE_SECONDS
from omnigraph.load.results import LoadResult
from omnigraph.load.routes import ByColumn, ByEnvelope
from omnigraph.manifest import rows
from omnigraph.model.streams import StreamRecord
from omnigraph.streams.batches import StreamSettings
from tests.support.clocks import LaterClock
from tests.support.crashes import as_other_machine
from tests.support.streams import (
    batch_of,
    batches_in,
    names_in,
    people,
    write_people,
    writer_of,
)

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge LivesIn: Person -> City { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph.omni", SCHEMA)


def refusal_code(graph: Graph, number: int, **settings: object) -> ErrorCode:
    with pytest.raises(StreamError) as refusal:
        write_people(graph, number, "zoe", **settings)
    assert "zoe" not in names_in(graph)
    return refusal.value.code


def test_each_batch_is_one_commit_that_names_it(graph: Graph) -> None:
    result = write_people(graph, 0, "ada", "bob")
    write_people(graph, 1, "cy")
    assert batches_in(graph) == [("people", 0), ("people", 1)]
    assert result is not None
    commit = graph.commits.show(str(result.commit_id))
    assert commit.stream == batch_of(0)
    assert names_in(graph) == {"ada": 1, "bob": 1, "cy": 1}


def test_a_batch_that_comes_again_changes_nothing(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    before = graph.baseline()
    assert write_people(omnigraph.open(graph.uri), 0, "ada") is None
    assert graph.baseline() == before


def test_a_batch_is_known_after_other_writers(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    graph.load({"City": [{"name": "rome"}]})
    graph.optimize()
    assert write_people(omnigraph.open(graph.uri), 0, "ada") is None
    write_people(graph, 1, "bob")
    assert names_in(graph) == {"ada": 1, "bob": 1}


def test_a_batch_is_known_after_a_cleanup(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    for name in ("rome", "oslo"):
        graph.load({"City": [{"name": name}]})
    later = omnigraph.open(graph.uri, clock=LaterClock(7200))
    assert later.cleanup(keep_commits=1).commits
    assert write_people(later, 0, "ada") is None
    write_people(later, 1, "bob")
    assert names_in(later) == {"ada": 1, "bob": 1}


def test_a_batch_without_rows_makes_no_commit_unless_it_is_the_first(graph: Graph) -> None:
    write_people(graph, 0)
    assert batches_in(graph) == [("people", 0)]
    result = write_people(graph, 1)
    assert isinstance(result, LoadResult)
    assert result.commit_id is None
    write_people(graph, 2, "ada")
    assert batches_in(graph) == [("people", 0), ("people", 2)]


def test_a_batch_without_rows_is_recorded_and_leaves_the_rest_as_it_is(graph: Graph) -> None:
    first = write_people(graph, 0, "ada")
    assert first is not None
    before = graph.baseline()
    write_people(graph, 1)
    [record] = graph.streams.list()
    assert (record.batch, record.commit_id) == (batch_of(1), first.commit_id)
    assert graph.baseline() == before
    assert write_people(omnigraph.open(graph.uri), 1) is None
    # Whoever plans on the commit that the branch is at is not disturbed.
    graph.load({"City": [{"name": "rome"}]}, expect_head=before)
    assert write_people(omnigraph.open(graph.uri), 1) is None
    write_people(graph, 2, "bob")
    assert names_in(graph) == {"ada": 1, "bob": 1}


def test_a_batch_without_rows_whose_record_took_long_is_looked_up_again(graph: Graph) -> None:
    class SlowClock(SystemClock):
        ahead = timedelta()

        def now(self) -> datetime:
            return super().now() + self.ahead

    def sleep() -> None:
        SlowClock.ahead += timedelta(seconds=LEASE_SECONDS + 1)

    write_people(graph, 0, "ada")
    slow = omnigraph.open(graph.uri, clock=SlowClock())
    version = graph.snapshot().manifest_version
    with arm(Failpoint.APPLY_AFTER_COMMIT, sleep):
        assert write_people(slow, 1) is not None
    assert graph.snapshot().manifest_version == version + 1
    assert [record.batch for record in graph.streams.list()] == [batch_of(1)]


def test_a_batch_without_rows_is_known_after_a_cleanup(graph: Graph) -> None:
    for number, names in enumerate([["ada"], [], ["bob"], [], []]):
        write_people(graph, number, *names)
    later = omnigraph.open(graph.uri, clock=LaterClock(7200))
    assert later.cleanup(keep_commits=1).commits
    assert later.check(history=True).is_sound
    assert write_people(later, 4) is None
    write_people(later, 5, "cy")
    assert names_in(later) == {"ada": 1, "bob": 1, "cy": 1}


def test_branches_and_tags_start_at_a_batch_without_rows(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    write_people(graph, 1)
    draft = graph.branches.create("draft")
    graph.tags.create("here")
    write_people(graph, 2, "bob")
    assert names_in(draft) == names_in(graph.at(commit="here")) == {"ada": 1}
    draft.load({"Person": [{"name": "cy"}]})
    graph.merge("draft")
    assert names_in(graph) == {"ada": 1, "bob": 1, "cy": 1}


def copy_of(graph: Graph, path: Path) -> Graph:
    """A copy of the graph as it is, as a backup is one."""
    copytree(graph.uri, path)
    return omnigraph.open(path)


def test_a_stream_does_not_go_on_in_a_copy_that_lacks_batches(graph: Graph, tmp_path: Path) -> None:
    write_people(graph, 0, "ada")
    restored = copy_of(graph, tmp_path / "copy.omni")
    for number in range(1, 6):
        write_people(graph, number, f"person {number}")
    with pytest.raises(StreamError, match="batches 1 to 5 are missing") as refusal:
        write_people(restored, 6, "zoe")
    assert refusal.value.code == ErrorCode.STREAM_GAP
    assert names_in(restored) == {"ada": 1}
    # Also where what is missing had no rows: nobody can tell.
    assert refusal_code(restored, 2) == ErrorCode.STREAM_GAP
    write_people(restored, 6, "zoe", adopts=True)
    assert names_in(restored) == {"ada": 1, "zoe": 1}
    assert refusal_code(graph, 7) == ErrorCode.STREAM_GAP


def test_a_stream_that_ran_on_another_branch_does_not_go_on_where_it_was(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    graph.branches.create("draft")
    for number, name in ((1, "bob"), (2, "cy")):
        writer_of(graph, "draft", adopts=True).write(batch_of(number), people(name))
    assert refusal_code(graph, 3) == ErrorCode.STREAM_GAP


@pytest.fixture
def old_graph(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A graph with the first batch of a stream, as releases wrote it that did not record others."""
    encode = rows._stream_row

    def encode_as_before(record: StreamRecord) -> rows.Row:
        row = encode(record)
        facts = json.loads(row["metadata"])
        del facts["gapless"]
        return {**row, "metadata": json.dumps(facts)}

    with monkeypatch.context() as earlier:
        earlier.setattr(rows, "_stream_row", encode_as_before)
        write_people(graph, 0, "ada")
    return omnigraph.open(graph.uri)


def test_a_stream_of_an_earlier_release_goes_on_once_over_batches_without_rows(
    old_graph: Graph,
) -> None:
    graph = old_graph
    assert [record.is_gapless for record in graph.streams.list()] == [False]
    # Others write, and do not make of it what it is not.
    graph.load({"City": [{"name": "rome"}]})
    write_people(graph, 4, "bob")
    assert [record.is_gapless for record in graph.streams.list()] == [True]
    assert refusal_code(graph, 6) == ErrorCode.STREAM_GAP
    write_people(graph, 5, "cy")
    assert names_in(graph) == {"ada": 1, "bob": 1, "cy": 1}


def test_a_batch_without_rows_takes_over_the_record_of_an_earlier_release(
    old_graph: Graph,
) -> None:
    write_people(old_graph, 3)
    [record] = old_graph.streams.list()
    assert (record.batch.number, record.is_gapless) == (3, True)
    assert refusal_code(old_graph, 5) == ErrorCode.STREAM_GAP


def test_two_streams_do_not_meet(graph: Graph) -> None:
    for number, name in enumerate(["ada", "bob"]):
        write_people(graph, number, name)
        other = writer_of(graph, name="cities", of="City")
        batch = batch_of(number, stream="cities", checkpoint="two")
        other.write(batch, pa.table({"name": [f"city of {name}"]}))
    assert batches_in(graph) == [("people", 0), ("cities", 0), ("people", 1), ("cities", 1)]
    assert [record.batch.number for record in graph.streams.list()] == [1, 1]


def write_by_two(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, *names: str, **settings: object
) -> list[LoadResult]:
    """Let two drivers of one checkpoint write its second batch at once: what they did.

    Both have looked the batch up before either writes it, and no queue of this process orders them:
    only the protocol does.
    """
    both = Barrier(2)
    passed: list[None] = []

    def meet() -> None:
        passed.append(None)
        if len(passed) <= 2:
            both.wait(30)

    results: list[LoadResult | None] = []

    def drive() -> None:
        results.append(write_people(omnigraph.open(graph.uri), 1, *names, **settings))

    drivers = [Thread(target=drive) for _ in range(2)]
    with as_other_machine(monkeypatch), arm(Failpoint.STREAM_AFTER_LOOKUP, meet):
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join(60)
    assert len(results) == 2
    return [result for result in results if result is not None]


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.MERGE])
def test_of_two_drivers_of_one_checkpoint_one_writes_each_batch(
    graph: Graph, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(graph, 0, "ada")
    assert len(write_by_two(graph, monkeypatch, "bob", mode=mode)) == 1
    assert names_in(graph) == {"ada": 1, "bob": 1}
    assert batches_in(graph) == [("people", 0), ("people", 1)]


def test_of_two_drivers_of_one_checkpoint_one_records_a_batch_without_rows(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(graph, 0, "ada")
    assert len(write_by_two(graph, monkeypatch)) == 1
    assert batches_in(graph) == [("people", 0)]
    assert [record.batch.number for record in graph.streams.list()] == [1]


def test_the_slower_of_two_drivers_is_stopped(graph: Graph) -> None:
    for number, name in enumerate(["ada", "bob", "cy"]):
        write_people(graph, number, name)
    assert refusal_code(graph, 1) == ErrorCode.STREAM_REWOUND


def test_another_batch_of_a_known_number_is_refused(graph: Graph) -> None:
    # A checkpoint was restored from a copy, and Spark planned the batch once more.
    write_people(graph, 0, "ada")
    with pytest.raises(StreamError, match="another batch of that number"):
        writer_of(graph).write(batch_of(0, read="more"), people("bob"))
    assert names_in(graph) == {"ada": 1}


def test_a_checkpoint_that_was_made_again_is_refused(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    with pytest.raises(StreamError) as refusal:
        writer_of(graph).write(batch_of(0, checkpoint="two"), people("ada"))
    assert refusal.value.code == ErrorCode.STREAM_REPLACED
    graph.streams.forget("people")
    writer_of(graph, mode=Mode.MERGE).write(batch_of(0, checkpoint="two"), people("ada", "bob"))
    assert names_in(graph) == {"ada": 1, "bob": 1}


def test_a_branch_does_not_have_the_streams_of_the_one_it_was_made_from(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    draft = graph.branches.create("draft")
    assert draft.streams.list() == ()
    with pytest.raises(StreamError) as refusal:
        writer_of(graph, "draft").write(batch_of(1), people("bob"))
    assert refusal.value.code == ErrorCode.STREAM_UNKNOWN
    # Nor after it has written something of its own.
    draft.load({"City": [{"name": "rome"}]})
    assert draft.streams.list() == ()
    writer_of(graph, "draft", adopts=True).write(batch_of(1), people("bob"))
    assert names_in(draft) == {"ada": 1, "bob": 1}
    assert [record.batch.number for record in draft.streams.list()] == [1]
    write_people(graph, 1, "cy")
    assert names_in(graph) == {"ada": 1, "cy": 1}


def test_a_branch_that_was_made_again_is_another_one(graph: Graph) -> None:
    graph.branches.create("draft")
    writer_of(graph, "draft").write(batch_of(0), people("ada"))
    graph.branches.delete("draft")
    with pytest.raises(BranchNotFoundError):
        writer_of(graph, "draft").write(batch_of(1), people("bob"))
    graph.branches.create("draft")
    with pytest.raises(StreamError) as refusal:
        writer_of(graph, "draft").write(batch_of(1), people("bob"))
    assert refusal.value.code == ErrorCode.STREAM_UNKNOWN


def test_a_stream_goes_on_on_a_branch_that_is_merged(graph: Graph) -> None:
    graph.branches.create("draft")
    for number, name in enumerate(["ada", "bob"]):
        writer_of(graph, "draft").write(batch_of(number), people(name))
        graph.merge("draft")
    assert names_in(graph) == {"ada": 1, "bob": 1}
    assert graph.streams.list() == ()
    assert writer_of(graph, "draft").write(batch_of(1), people("bob")) is None


def test_a_batch_that_breaks_rules_is_not_there_and_can_be_written_later(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    with pytest.raises(IntegrityError, match="'ada' already exists"):
        write_people(graph, 1, "ada", "bob")
    assert names_in(graph) == {"ada": 1}
    write_people(graph, 1, "ada", "bob", mode=Mode.MERGE)
    assert names_in(graph) == {"ada": 1, "bob": 1}


def test_rows_that_break_rules_are_kept_and_the_others_written(
    graph: Graph, tmp_path: Path
) -> None:
    write_people(graph, 0, "ada")
    for _ in range(2):
        # The second driver finds the batch, and leaves the file as it is.
        write_people(graph, 1, "ada", "bob", rejects=tmp_path / "rejects")
    assert names_in(graph) == {"ada": 1, "bob": 1}
    [file] = (tmp_path / "rejects").iterdir()
    assert re.fullmatch(r"one-000000001-[0-9A-Z]{26}\.jsonl", file.name)
    assert rejected_names(file) == ["ada"]
    assert f"1 row rejected, see {file.name}" in str(graph.commits.list()[0].message)


def rejected_names(file: Path) -> list[str]:
    rejects = map(json.loads, file.read_text().splitlines())
    return [reject["row"]["data"]["name"] for reject in rejects]


def named_rejects(graph: Graph, directory: Path) -> Path:
    """The file of rejected rows that the newest commit names."""
    message = str(graph.commits.list()[0].message)
    return directory / message.rpartition("see ")[2]


def test_of_two_drivers_of_one_checkpoint_one_keeps_the_rows_that_it_rejects(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(graph, 0, "ada")
    assert len(write_by_two(graph, monkeypatch, "ada", "bob", rejects=tmp_path / "rejects")) == 1
    assert names_in(graph) == {"ada": 1, "bob": 1}
    named = named_rejects(graph, tmp_path / "rejects")
    assert rejected_names(named) == ["ada"]
    assert list(named.parent.iterdir()) == [named]


def test_the_rejects_of_an_interrupted_batch_stay_beside_those_that_a_commit_names(
    graph: Graph, tmp_path: Path
) -> None:
    write_people(graph, 0, "ada")
    with arm(Failpoint.CLAIM_AFTER_PUT), pytest.raises(SimulatedCrash):
        write_people(graph, 1, "ada", "bob", rejects=tmp_path / "rejects")
    [left] = (tmp_path / "rejects").iterdir()
    write_people(omnigraph.open(graph.uri), 1, "ada", "bob", rejects=tmp_path / "rejects")
    named = named_rejects(graph, tmp_path / "rejects")
    assert rejected_names(named) == rejected_names(left) == ["ada"]
    assert named != left


def test_a_batch_without_rejects_leaves_no_file(graph: Graph, tmp_path: Path) -> None:
    write_people(graph, 0, "ada", rejects=tmp_path / "rejects")
    assert not list((tmp_path / "rejects").iterdir())


def test_a_batch_whose_rows_are_all_rejected_makes_a_commit_that_says_so(
    graph: Graph, tmp_path: Path
) -> None:
    write_people(graph, 0, "ada")
    for _ in range(2):
        write_people(omnigraph.open(graph.uri), 1, "ada", rejects=tmp_path / "rejects")
    assert names_in(graph) == {"ada": 1}
    assert batches_in(graph) == [("people", 0), ("people", 1)]
    assert rejected_names(named_rejects(graph, tmp_path / "rejects")) == ["ada"]
    write_people(graph, 2, "bob")


def test_a_stream_follows_the_schema(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  mood: String?"))
    write_people(graph, 1, "bob")
    assert names_in(graph) == {"ada": 1, "bob": 1}


def test_a_stream_of_a_type_that_is_gone_stops(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    graph.schema.apply(renamed.replace("Person -> City", "Human -> City"))
    with pytest.raises(TypeNotFoundError, match="Person"):
        write_people(graph, 1, "bob")
    write_people(graph, 1, "bob", of="Human")
    assert batches_in(graph) == [("people", 0), ("people", 1)]


MIXED = pa.table(
    {
        "kind": ["City", "Person", "LivesIn", "Person"],
        "name": ["rome", "ada", None, "bob"],
        "age": pa.array([None, 36, None, None], pa.int32()),
        "from": [None, None, "ada", None],
        "to": [None, None, "rome", None],
    }
)


def test_a_column_routes_rows_to_their_types(graph: Graph) -> None:
    writer_of(graph, of=ByColumn("kind")).write(batch_of(0), MIXED)
    assert names_in(graph) == {"ada": 1, "bob": 1}
    assert graph.entity("Person", "ada") == {"id": "ada", "name": "ada", "age": 36}
    assert [table.row_count for table in graph.snapshot().pins.values()] == [1, 2, 1]


def test_rows_that_a_column_routes_nowhere_are_violations(graph: Graph, tmp_path: Path) -> None:
    strange = pa.table(
        {
            "kind": ["Person", "Persn", None, "City"],
            "name": ["ada", "bob", "cy", "rome"],
            "age": pa.array([1, 2, 3, 4], pa.int32()),
        }
    )
    with pytest.raises(IntegrityError) as refusal:
        writer_of(graph, of=ByColumn("kind")).write(batch_of(0), strange)
    messages = sorted(each.message for each in refusal.value.report.violations)
    assert messages == [
        "City has no property age, and the row has a value for it",
        "kind says no type: it is null",
        "kind says no type: the schema has no type Persn (did you mean Person?)",
    ]
    writer_of(graph, of=ByColumn("kind"), rejects=tmp_path).write(batch_of(0), strange)
    assert names_in(graph) == {"ada": 1}
    lines = named_rejects(graph, tmp_path).read_text().splitlines()
    assert [json.loads(each)["row"]["name"] for each in lines] == ["bob", "cy", "rome"]
    assert [json.loads(each)["row"]["kind"] for each in lines] == ["Persn", None, "City"]


def test_values_that_no_property_takes_may_be_ignored(graph: Graph) -> None:
    rows = pa.table({"kind": ["City", "Person"], "name": ["rome", "ada"], "size": [1, 2]})
    writer_of(graph, of=ByColumn("kind"), ignore_unknown=True).write(batch_of(0), rows)
    assert graph.entity("City", "rome") == {"id": "rome", "name": "rome"}


def test_a_router_that_is_no_column_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidInputError, match="no column 'sort'"):
        writer_of(graph, of=ByColumn("sort")).write(batch_of(0), MIXED)


ENVELOPES = (
    '{"type": "Person", "data": {"name": "ada"}}',
    '{"type": "City",\n "data": {"name": "rome"}}',
    '{"edge": "LivesIn", "from": "ada", "to": "rome"}',
)


@pytest.mark.parametrize("kind", [pa.utf8(), pa.large_utf8(), pa.binary()])
def test_an_envelope_says_the_type(graph: Graph, kind: pa.DataType) -> None:
    rows = pa.table({"value": pa.array(ENVELOPES).cast(kind), "offset": [1, 2, 3]})
    writer_of(graph, of=ByEnvelope("value")).write(batch_of(0), rows)
    assert [table.row_count for table in graph.snapshot().pins.values()] == [1, 1, 1]


def test_an_envelope_that_is_none_is_a_violation(graph: Graph) -> None:
    rows = pa.table(
        {"value": [b"\xff\xfe", b'{"type": "Person", "data": {"name": "ada"}}', b"[1]"]}
    )
    with pytest.raises(IntegrityError) as refusal:
        writer_of(graph, of=ByEnvelope("value")).write(batch_of(0), rows)
    assert [each.origin for each in refusal.value.report.violations] == ["rows:1", "rows:3"]


def test_an_envelope_that_is_null_is_a_violation_that_says_so(graph: Graph, tmp_path: Path) -> None:
    # As the changes of a feed that delete rows.
    lines = ['{"type": "Person", "data": {"name": "ada"}}', None]
    rows = pa.table({"op": ["insert", "delete"], "after": pa.array(lines, pa.utf8())})
    with pytest.raises(IntegrityError) as refusal:
        writer_of(graph, of=ByEnvelope("after")).write(batch_of(0), rows)
    [violation] = refusal.value.report.violations
    assert violation.message == (
        "after is null: there is no row to load (a deleted row has none: leave it out, as "
        "the option ops of "
        "a feed does)"
    )
    assert violation.origin == "rows:2"
    writer_of(graph, of=ByEnvelope("after"), rejects=tmp_path).write(batch_of(0), rows)
    assert names_in(graph) == {"ada": 1}
    assert json.loads(named_rejects(graph, tmp_path).read_text())["row"] == {"after": None}


def test_a_stream_that_is_forgotten_is_unknown(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    graph.streams.forget("people", actor="ann")
    newest = graph.commits.list()[0]
    assert (newest.actor, newest.message) == ("ann", "forget the stream people")
    assert graph.streams.list() == ()
    assert refusal_code(graph, 1) == ErrorCode.STREAM_UNKNOWN
    with pytest.raises(NotFoundError, match="no stream people"):
        graph.streams.forget("people")


def test_a_read_only_handle_forgets_nothing(graph: Graph) -> None:
    write_people(graph, 0, "ada")
    with pytest.raises(omnigraph.errors.NotAllowedError):
        omnigraph.open(graph.uri, read_only=True).streams.forget("people")


def parse(**changes: object) -> StreamSettings:
    given: dict[str, object] = {
        "type_name": "Person",
        "router": None,
        "envelope": None,
        "mode": "append",
        "on_error": "fail",
        "rejects": None,
        "ignore_unknown": False,
        "embed": "auto",
        "adopts": False,
        "on_duplicate": None,
        "order_by": None,
    }
    return StreamSettings.parse("people", **(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "overwrite"},
        {"mode": "upsert"},
        {"on_error": "quarantine"},
        {"rejects": "rejects"},
        {"on_error": "quarantine", "rejects": "s3://lake/rejects"},
        {"on_error": "quarantine", "rejects": Path("abfss://lake@store/rejects")},
        {"router": "kind"},
        {"type_name": None},
        {"embed": "never"},
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, object]) -> None:
    assert parse().of == "Person"
    with pytest.raises(InvalidParameterError):
        parse(**changes)


def test_rejects_are_written_to_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AlreadyExistsError, match="is a file"):
        parse(on_error="quarantine", rejects=tmp_path / "file")


def test_duplicates_in_a_batch_need_an_order(graph: Graph) -> None:
    rows = pa.table({"name": ["ada", "ada"], "age": pa.array([2, 1], pa.int32())})
    with pytest.raises(InvalidParameterError, match="have no order"):
        parse(mode="merge", on_duplicate="last")
    by_age = parse(mode="merge", order_by="age")
    assert by_age.on_duplicate is OnDuplicate.LAST
    with pytest.raises(IntegrityError, match="ada"):
        writer_of(graph, mode=Mode.MERGE).write(batch_of(0), rows)

    result = writer_of(graph, mode=Mode.MERGE, on_duplicate="last", order_by="age").write(
        batch_of(0), rows
    )

    assert result is not None
    assert result.superseded == 1
    assert graph.entity("Person", "ada") == {"id": "ada", "name": "ada", "age": 2}
