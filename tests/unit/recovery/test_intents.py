"""Intents and their sidecars: what is written is read again, and nothing else is acted on."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.clock import encode_ulid
from omnigraph.errors import RecoveryNeededError
from omnigraph.manifest.drafts import AddParent, CommitDraft, RecordBatch, SetSchema
from omnigraph.manifest.requirements import BranchIs, HeadIs, SchemaIs, StreamAt
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.streams import StreamBatch
from omnigraph.model.tables import TableKey
from omnigraph.recovery.intents import (
    ForkSource,
    Intent,
    TableIntent,
    UnreadableIntentError,
    decode,
    encode,
)
from omnigraph.recovery.owners import Owner
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.store import Store

PERSON = TableKey.parse("node:Person")
KNOWS = TableKey.parse("edge:Knows")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = encode_ulid(7)

ulids = st.integers(0, (1 << 128) - 1).map(encode_ulid)
commits = ulids.map(CommitId)
keys = st.sampled_from([PERSON, KNOWS, TableKey.parse("node:City_2")])
instants = st.datetimes(timezones=st.just(UTC))
versions = st.integers(1, 1 << 62)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
tables = st.builds(
    TableIntent,
    keys,
    texts,
    st.none() | texts,
    versions,
    versions,
    st.none() | versions,
    st.none() | st.builds(ForkSource, st.none() | ulids),
)
heads = commits.map(lambda commit: HeadIs(commit, commit))
places = st.builds(StreamAt, texts, st.none() | commits, st.none() | st.integers(0, 1 << 62))
batches = st.builds(StreamBatch, texts, texts, st.integers(0, 1 << 62), texts)


@st.composite
def drafts(draw: st.DrawFn) -> CommitDraft:
    """A commit as a sidecar can record it: without the pins of tables that only move."""
    place = draw(st.none() | places)
    conditions = (draw(st.none() | st.builds(SchemaIs, texts)), draw(st.none() | heads), place)
    merged = draw(st.none() | st.builds(AddParent, commits))
    schema = draw(st.none() | st.builds(SetSchema, texts))
    batch = None if place is None else RecordBatch(replace(draw(batches), stream=place.stream))
    return CommitDraft(
        draw(st.sampled_from([MAIN, BranchName("review/x")])),
        draw(commits),
        draw(st.sampled_from(OperationKind)),
        draw(st.none() | texts),
        draw(st.none() | texts),
        changes=tuple(each for each in (schema, merged, batch) if each is not None),
        requires=(
            BranchIs(draw(st.none() | ulids)),
            *(each for each in conditions if each is not None),
        ),
    )


intents = st.builds(
    Intent,
    operation_id=ulids.map(OperationId),
    draft=drafts(),
    started_at=instants,
    tables=st.lists(tables, max_size=4).map(tuple),
    locks=st.lists(keys, max_size=3).map(tuple),
    lease_until=st.none() | instants,
    resolves=st.none() | ulids.map(OperationId),
    owner=st.none() | st.builds(Owner, texts, st.integers(1, 1 << 22), versions),
)

DRAFT = CommitDraft(
    MAIN, CommitId(encode_ulid(8)), OperationKind.MUTATION, requires=(BranchIs(None),)
)
INTENT = Intent(
    OperationId(ID),
    DRAFT,
    NOW,
    (TableIntent(PERSON, "nodes/1", None, 3, 4),),
    lease_until=NOW + timedelta(seconds=30),
    owner=Owner("host", 1, 2),
)


@given(intents)
def test_what_is_written_is_read_again(intent):
    assert decode(encode(intent)) == intent


@given(intents, st.data())
def test_what_is_cut_off_is_refused(intent, data):
    whole = encode(intent)
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(UnreadableIntentError):
        decode(whole[:cut])


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data):
    with pytest.raises(UnreadableIntentError):
        decode(data)


# One level of what JSON can say in the place of anything else.
json_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False),
    texts,
    st.just([]),
    st.just({}),
    st.just([1]),
    st.just({"a": 1}),
    st.just("2026-01-01T00:00:00"),
)


@given(st.data())
def test_a_field_of_another_kind_is_refused_or_read_as_it_may_be(data):
    record = json.loads(encode(INTENT))
    place = data.draw(st.sampled_from([record, record["tables"][0], record["owner"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(json_values)

    try:
        intent = decode(json.dumps(record).encode())
    except UnreadableIntentError:
        return
    # Whatever was let through can be judged and compared, and is written as it was read.
    assert intent.lease_until is None or intent.lease_until <= NOW or intent.lease_until > NOW
    assert intent.overlaps(intent)
    assert decode(encode(intent)) == intent


REFUSED = {
    "newer": {"schema_version": 3},
    "much newer": {"schema_version": 1 << 70},
    "older than any": {"schema_version": 1},
    "no number": {"schema_version": "2"},
    "a truth value": {"schema_version": True},
    "no schema": {"schema_version": None},
    "an unknown writer": {"writer_kind": "defragment"},
    "no branch": {"branch": ""},
    "an internal branch": {"branch": "__run__1"},
    "no tables": {"tables": None},
    "tables that are no list": {"tables": ""},
    "guards that are no list": {"guards": {}},
    "no instant": {"started_at": "yesterday"},
    "a lease that is no instant": {"lease_until": 17},
    "a lease in nobody's time zone": {"lease_until": "2026-01-01T00:00:00"},
    "no commit id": {"commit_id": None},
    "another commit id": {"commit_id": "main"},
    "a table that is none": {"tables": [{"table_key": "Person"}]},
    "a table without a version": {"tables": [{"table_key": "node:Person", "location": "x"}]},
    "half an owner": {"owner": {"host": "here"}},
    "registrations": {"registrations": [{"table_key": "node:New"}]},
    "tombstones": {"tombstones": ["node:Person"]},
    "schema files": {"schema_files": {"a": "b"}},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_what_we_could_not_finish_is_refused(change):
    record = {**json.loads(encode(INTENT)), **change}

    with pytest.raises(UnreadableIntentError):
        decode(json.dumps(record).encode())


def test_empty_fields_of_later_releases_are_no_reason_to_refuse():
    record = {**json.loads(encode(INTENT)), "registrations": [], "tombstones": [], "colour": "red"}

    assert decode(json.dumps(record).encode()) == INTENT


def test_a_lease_of_another_time_zone_is_the_same_lease():
    there = replace(INTENT, lease_until=NOW.astimezone(timezone(timedelta(hours=5))))

    assert decode(encode(there)).lease_until == NOW


def test_nesting_without_end_is_refused():
    with pytest.raises(UnreadableIntentError):
        decode(b"[" * 100_000)


OTHER = replace(INTENT, draft=replace(DRAFT, commit_id=CommitId(encode_ulid(9))))
OVERLAPS = {
    "the same table": (INTENT, OTHER, True),
    "another table": (INTENT, replace(OTHER, tables=()), False),
    "another branch": (
        INTENT,
        replace(OTHER, draft=replace(OTHER.draft, branch=BranchName("draft"))),
        False,
    ),
    "locked there": (INTENT, replace(OTHER, tables=(), locks=(PERSON,)), True),
    "locked by both": (
        replace(INTENT, tables=(), locks=(PERSON,)),
        replace(OTHER, tables=(), locks=(PERSON, KNOWS)),
        True,
    ),
    "the same request": (
        INTENT,
        replace(INTENT, draft=replace(DRAFT, branch=BranchName("draft")), tables=()),
        True,
    ),
}


@pytest.mark.parametrize(("one", "other", "overlaps"), OVERLAPS.values(), ids=OVERLAPS)
def test_overlaps(one, other, overlaps):
    assert one.overlaps(other) is overlaps
    assert other.overlaps(one) is overlaps


def test_a_sidecar_under_a_wrong_name_is_not_acted_on(tmp_path):
    objects = Store.open(tmp_path).objects
    sidecars = Sidecars(objects)
    sidecars.put(INTENT)
    objects.put(f"__recovery/{encode_ulid(9)}.json", encode(INTENT))
    objects.put(f"__recovery/{encode_ulid(8)}.json", b"remember the milk")

    found = sidecars.find()

    assert found.intents == (INTENT,)
    names = [each.path for each in found.unreadable]
    assert names == [f"__recovery/{encode_ulid(each)}.json" for each in (8, 9)]
    with pytest.raises(RecoveryNeededError, match="and 1 more"):
        found.require_readable()


def test_a_sidecar_that_goes_while_it_is_looked_for_was_not_there(tmp_path, monkeypatch):
    objects = Store.open(tmp_path).objects
    sidecars = Sidecars(objects)
    sidecars.put(INTENT)
    monkeypatch.setattr(objects, "read", lambda _: None)

    assert sidecars.find().intents == ()
    assert sidecars.find(known=[INTENT]).holds(INTENT.operation_id)


def test_deleting_twice_is_as_good_as_once(tmp_path):
    sidecars = Sidecars(Store.open(tmp_path).objects)
    sidecars.put(INTENT)
    sidecars.delete(INTENT.operation_id)
    sidecars.delete(INTENT.operation_id)

    assert sidecars.find().intents == ()
