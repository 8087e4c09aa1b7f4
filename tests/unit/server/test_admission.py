"""Admission: bounded in all and for each actor, in order, with a deadline."""

import asyncio
from types import SimpleNamespace

import pytest

from omnigraph.errors import ErrorCode, LimitExceededError
from omnigraph.server import admission
from omnigraph.server.admission import Gate, GateLimits, Outbox


async def hold(gate, actor, log, release):
    async with gate.enter(actor):
        log.append(actor)
        await release.wait()


def run(scene):
    return asyncio.run(asyncio.wait_for(scene(), 10))


def test_no_more_than_allowed_are_inside_and_a_busy_actor_lets_others_pass():
    async def scene():
        gate = Gate("read", GateLimits(in_all=3, per_actor=2, waiting=10, wait_seconds=5))
        release, log = asyncio.Event(), list[str]()
        held = [asyncio.create_task(hold(gate, actor, log, release)) for actor in "aaab"]
        await asyncio.sleep(0.01)
        assert (log, gate.inside, gate.waiting) == (["a", "a", "b"], 3, 1)
        release.set()
        await asyncio.gather(*held)
        assert (log[3], gate.inside, gate.waiting) == ("a", 0, 0)

    run(scene)


def test_too_many_and_too_long_are_sent_away_with_a_time_to_return():
    async def scene():
        gate = Gate("write", GateLimits(in_all=1, per_actor=1, waiting=1, wait_seconds=0.05))
        release, log = asyncio.Event(), list[str]()
        first = asyncio.create_task(hold(gate, "a", log, release))
        await asyncio.sleep(0)
        second = asyncio.create_task(hold(gate, "b", log, release))
        await asyncio.sleep(0)
        with pytest.raises(LimitExceededError, match="wait already") as busy:
            async with gate.enter("c"):
                pass
        assert busy.value.code is ErrorCode.TOO_BUSY
        assert busy.value.details["retry_after"] == 1
        with pytest.raises(LimitExceededError, match="waited"):
            await second
        release.set()
        await first
        assert (log, gate.inside, gate.waiting) == (["a"], 0, 0)

    run(scene)


def test_whoever_leaves_while_waiting_takes_no_place():
    async def scene():
        gate = Gate("read", GateLimits(in_all=1, per_actor=1, waiting=5, wait_seconds=5))
        release, log = asyncio.Event(), list[str]()
        first = asyncio.create_task(hold(gate, "a", log, release))
        await asyncio.sleep(0)
        second = asyncio.create_task(hold(gate, "b", log, release))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        release.set()
        await first
        assert (gate.inside, gate.waiting) == (0, 0)

    run(scene)


def test_a_crowd_of_one_actor_leaves_places_and_turns_to_others():
    async def scene():
        gate = Gate("read", GateLimits(in_all=4, per_actor=3, waiting=10, wait_seconds=5))
        release, log = asyncio.Event(), list[str]()
        crowd = [asyncio.create_task(hold(gate, "eve", log, release)) for _ in range(20)]
        await asyncio.sleep(0.01)
        # Three are inside, half of the waiting places are taken, and the others were sent away.
        assert (gate.inside, gate.waiting) == (3, 5)
        refused = [task for task in crowd if task.done()]
        assert len(refused) == 12
        assert all("of this actor wait already" in str(task.exception()) for task in refused)

        async with gate.enter("ada"):
            assert (gate.inside, gate.waiting) == (4, 5)
        release.set()
        await asyncio.gather(*crowd, return_exceptions=True)
        assert (gate.inside, gate.waiting) == (0, 0)

    run(scene)


def test_whoever_has_the_fewest_inside_is_next():
    async def scene():
        gate = Gate("read", GateLimits(in_all=2, per_actor=2, waiting=10, wait_seconds=5))
        log = list[str]()
        first, then, others = asyncio.Event(), asyncio.Event(), asyncio.Event()
        inside = [
            asyncio.create_task(hold(gate, "eve", log, first)),
            asyncio.create_task(hold(gate, "eve", log, then)),
        ]
        await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(hold(gate, actor, log, others)) for actor in "eab"]
        waiting.insert(0, asyncio.create_task(hold(gate, "eve", log, others)))
        await asyncio.sleep(0.01)
        first.set()
        await asyncio.sleep(0.01)
        assert log == ["eve", "eve", "e"]
        then.set()
        await asyncio.sleep(0.01)
        assert log[3] == "a"
        others.set()
        await asyncio.gather(*inside, *waiting)
        assert sorted(log[4:]) == ["b", "eve"]

    run(scene)


def test_the_time_to_return_counts_those_that_still_run(monkeypatch):
    async def scene():
        gate = Gate("read", GateLimits(in_all=2, per_actor=2, waiting=0, wait_seconds=5))
        now = [100.0]
        monkeypatch.setattr(admission, "time", SimpleNamespace(monotonic=lambda: now[0]))
        async with gate.enter("a"), gate.enter("a"):
            now[0] += 40
            with pytest.raises(LimitExceededError) as busy:
                async with gate.enter("b"):
                    pass
        assert busy.value.details["retry_after"] == 40

    run(scene)


def test_a_place_that_is_kept_is_free_when_it_is_left():
    async def scene():
        gate = Gate("read", GateLimits(in_all=1, per_actor=1, waiting=1, wait_seconds=5))
        async with gate.enter("a") as place:
            leave = place.keep()
        assert gate.inside == 1
        leave()
        assert gate.inside == 0

    run(scene)


def test_answers_on_their_way_are_bounded_in_all_and_for_each_actor():
    outbox = Outbox(100)
    first = outbox.put("a", 40)
    assert (outbox.put("a", 20), outbox.unsent_bytes) == (None, 40)
    second = outbox.put("b", 50)
    assert outbox.put("c", 11) is None
    assert first is not None
    assert second is not None
    first()
    assert outbox.put("c", 11) is not None
    second()
    assert outbox.unsent_bytes == 11
