"""Pieces of work side by side."""

from __future__ import annotations

import threading

import pytest

from omnigraph.engine.local.side_by_side import run_side_by_side


def test_pieces_run_at_the_same_time_and_keep_their_order():
    meeting = threading.Barrier(3, timeout=10)

    def meet(name: str) -> str:
        meeting.wait()
        return name

    pieces = [lambda name=name: meet(name) for name in "abc"]
    assert run_side_by_side(pieces) == ["a", "b", "c"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_is_raised_when_all_have_ended(failing):
    has_ended = threading.Event()

    def fail() -> None:
        message = "no"
        raise ValueError(message)

    pieces = [has_ended.set, has_ended.set]
    pieces[failing] = fail
    threads = threading.active_count()
    with pytest.raises(ValueError, match="no"):
        run_side_by_side(pieces)
    assert has_ended.is_set()
    assert threading.active_count() == threads
