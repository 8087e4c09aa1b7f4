"""Runs calls in several threads or processes at the same time."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerContext
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run each call in its own thread, all started together; failures are raised here."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        start.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def in_processes(work: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> list[T]:
    """Call `work(barrier, *each)` in one process each, and return the results in order.

    Nothing is inherited but the environment; `work` and its arguments are pickled.
    """
    context = fork_context()
    shared = (context.Barrier(len(arguments)), dict(os.environ))
    with context.Pool(len(arguments), _begin, shared) as pool:
        return pool.starmap(_together, [(work, *each) for each in arguments], chunksize=1)


def fork_context() -> ForkServerContext:
    """A context that forks processes from one that has imported all that tests use, and no more.

    That takes a tenth of a fresh start. Their environment is that of the first process.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.crashes"])
    return context


_shared: dict[str, Any] = {}


def _begin(barrier: Any, environment: dict[str, str]) -> None:
    _shared["barrier"] = barrier
    os.environ.clear()
    os.environ.update(environment)


def _together(work: Callable[..., T], *arguments: Any) -> T:
    return work(_shared["barrier"], *arguments)
