"""Whether a batch is due: what a branch records of its stream, and what the checkpoint says."""

from datetime import UTC, datetime

import pytest

from omnigraph.errors import ErrorCode, LimitExceededError, StreamError
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN
from omnigraph.model.streams import StreamBatch, StreamRecord, StreamStep
from omnigraph.streams.standing import STREAMS_MAX, Due, Repeat, judge

LAST = CommitId("01ARZ3NDEKTSV4RRFFQ69G5FAV")


def snapshot_with(*batches: StreamBatch, is_gapless: bool = True) -> Snapshot:
    head = Commit(
        LAST,
        MAIN,
        1,
        None,
        None,
        None,
        datetime(2026, 1, 1, tzinfo=UTC),
        OperationKind.LOAD,
        None,
        "schema",
    )
    records = {each.stream: StreamRecord(each, LAST, None, is_gapless) for each in batches}
    return Snapshot(MAIN, 1, head, {}, streams=records)


def batch(number: int, digest: str = "x", *, checkpoint: str = "a", name: str = "s") -> StreamBatch:
    return StreamBatch(name, checkpoint, number, digest)


NOW = snapshot_with(batch(7))
OLD = snapshot_with(batch(7), is_gapless=False)
"""A branch whose record an earlier release wrote, which recorded no batches without rows."""
EMPTY = snapshot_with()

# fmt: off
DUE = {
    #                              branch  batch      after  number
    "the first one":              (EMPTY,  batch(0),  None,  None),
    "the next one":               (NOW,    batch(8),  LAST,  7),
    "the next of an old record":  (OLD,    batch(8),  LAST,  7),
    "one after empty ones":       (OLD,    batch(12), LAST,  7),
    "the first of another":       (NOW,    batch(0, checkpoint="b", name="t"), None, None),
}
REFUSED = {
    #                              branch  batch                    code
    "one after missing ones":     (NOW,    batch(12),               ErrorCode.STREAM_GAP),
    "one after a missing one":    (NOW,    batch(9),                ErrorCode.STREAM_GAP),
    "one before the newest":      (NOW,    batch(6),                ErrorCode.STREAM_REWOUND),
    "one before an old record":   (OLD,    batch(6),                ErrorCode.STREAM_REWOUND),
    "another of the same number": (NOW,    batch(7, "y"),           ErrorCode.STREAM_REWOUND),
    "a new checkpoint":           (NOW,    batch(0, checkpoint="b"), ErrorCode.STREAM_REPLACED),
    "a later one of a new one":   (NOW,    batch(9, checkpoint="b"), ErrorCode.STREAM_REPLACED),
    "not the first of a branch":  (EMPTY,  batch(3),                ErrorCode.STREAM_UNKNOWN),
    "a known checkpoint":         (NOW,    batch(8, name="t"),      ErrorCode.STREAM_RENAMED),
}
# fmt: on


@pytest.mark.parametrize(("now", "given", "after", "number"), DUE.values(), ids=DUE.keys())
def test_a_batch_is_due(
    now: Snapshot, given: StreamBatch, after: CommitId | None, number: int | None
) -> None:
    assert judge(given, now) == Due(StreamStep(given, after, number))


def test_a_batch_that_the_branch_has_is_not_written_again() -> None:
    assert judge(batch(7), NOW) == Repeat(NOW.streams["s"])


@pytest.mark.parametrize(
    ("number", "missing"), [(9, "batch 8 is missing"), (12, "batches 8 to 11 are missing")]
)
def test_the_error_for_a_gap_names_what_is_missing(number: int, missing: str) -> None:
    with pytest.raises(StreamError, match=missing):
        judge(batch(number), NOW)


@pytest.mark.parametrize(("now", "given", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_a_batch_is_refused(now: Snapshot, given: StreamBatch, code: ErrorCode) -> None:
    with pytest.raises(StreamError) as refusal:
        judge(given, now)
    assert refusal.value.code == code
    assert str(given.number) in refusal.value.message or given.checkpoint in refusal.value.message


def test_a_caller_may_adopt_a_checkpoint_and_nothing_else() -> None:
    assert judge(batch(3), EMPTY, adopts=True) == Due(StreamStep(batch(3), None))
    assert judge(batch(12), NOW, adopts=True) == Due(StreamStep(batch(12), LAST, 7))
    for now, given, code in REFUSED.values():
        if code not in (ErrorCode.STREAM_UNKNOWN, ErrorCode.STREAM_GAP):
            with pytest.raises(StreamError):
                judge(given, now, adopts=True)


def test_a_branch_has_a_limited_number_of_streams() -> None:
    full = snapshot_with(
        *(batch(0, checkpoint=str(each), name=f"s{each}") for each in range(STREAMS_MAX))
    )
    with pytest.raises(LimitExceededError, match="1,000 streams"):
        judge(batch(0, checkpoint="new", name="new"), full)
    assert judge(batch(1, checkpoint="5", name="s5"), full) == Due(
        StreamStep(batch(1, checkpoint="5", name="s5"), LAST, 0)
    )
