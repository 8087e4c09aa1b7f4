"""Commit ids come from outside as text, and are checked there."""

import pickle

import pytest

from omnigraph.clock import SystemClock
from omnigraph.errors import InvalidNameError
from omnigraph.model.ids import CommitId


def test_a_minted_id_is_a_commit_id():
    ulid = SystemClock().ulid()

    assert CommitId.parse(ulid) == ulid
    assert type(CommitId.parse(ulid)) is CommitId


@pytest.mark.parametrize(
    "text", ["", "main", "01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKT\u017fV4RRFFQ69G5FAV", "8" * 26]
)
def test_anything_else_is_not(text):
    with pytest.raises(InvalidNameError, match="is not a commit id") as refused:
        CommitId.parse(text)
    assert refused.value.hint == "commit ids have 26 characters; see 'omnigraph commit list'"


def test_an_id_may_be_typed_in_any_case():
    assert CommitId.parse("01arz3ndektsv4rrffq69g5fav") == "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_a_refusal_does_not_repeat_a_novel():
    with pytest.raises(InvalidNameError) as refused:
        CommitId.parse("x" * 100_000)

    assert len(str(refused.value)) < 500


def test_a_commit_id_can_be_pickled():
    commit_id = CommitId.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV")

    assert pickle.loads(pickle.dumps(commit_id)) == commit_id
