"""The same moment in several threads or processes."""

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run each call in a thread of its own, all let go together; what fails, fails here."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        start.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def in_processes(work: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> list[T]:
    """Call `work(barrier, *each)` in a fresh process each, and give the answers in order.

    Nothing is inherited but the environment; `work` and what it is given travel by pickling.
    """
    context = multiprocessing.get_context("spawn")
    with context.Manager() as shared:
        barrier = shared.Barrier(len(arguments))
        with context.Pool(len(arguments)) as pool:
            return pool.starmap(work, [(barrier, *each) for each in arguments], chunksize=1)
