"""Admission: bounded in all and for each actor, in order, with a deadline."""

import asyncio

import pytest

from omnigraph.errors import ErrorCode, LimitExceededError
from omnigraph.server.admission import Gate, GateLimits


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
