"""Interrupts: work of foreign code that ends when its caller is interrupted, or its budget is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Final, TypeVar

from omnigraph.engine.budget import Budget

INTERRUPT_SECONDS: Final = 0.02
"""How often a run that has to end is interrupted until it does: one that starts forgets earlier
interrupts."""


Answer = TypeVar("Answer")

RUN_THREAD: Final = "omnigraph-run"
"""The name of a thread that runs foreign code while another waits for it."""


def run_interruptibly(
    work: Callable[[], Answer],
    interrupt: Callable[[], None],
    budget: Budget,
    *,
    patience_seconds: float | None = None,
) -> Answer:
    """The result of the work, which runs in another thread where something may end it.

    Signals reach only the main thread, and only while that runs Python: it must not be the one that
    waits for foreign code (tests/contract/duckdb/test_duckdb_limits.py).

    Args:
        interrupt: Makes work that runs fail soon; called again until it has.
        patience_seconds: How long the caller waits for that; None for until it has. What takes
            longer is interrupted all the same.
    """
    budget.check()
    if not budget.may_end_early and threading.current_thread() is not threading.main_thread():
        return work()
    future: Future[Answer] = Future()
    thread = _thread(_fulfil, future, work)
    try:
        _wait(thread, future, budget)
    except BaseException:
        # In a thread of its own: a second Ctrl-C must not leave the work running.
        ending = _thread(_end, thread, interrupt)
        ending.start()
        ending.join(patience_seconds)
        raise
    thread.join()
    return future.result()


def _thread(target: Callable[..., None], *arguments: object) -> threading.Thread:
    return threading.Thread(target=target, args=arguments, name=RUN_THREAD, daemon=True)


def _end(thread: threading.Thread, interrupt: Callable[[], None]) -> None:
    while thread.is_alive():
        interrupt()
        thread.join(INTERRUPT_SECONDS)


def _wait(thread: threading.Thread, future: Future[Answer], budget: Budget) -> None:
    """Start the thread, and return when it is done; raise when the budget is."""
    wake = threading.Event()
    future.add_done_callback(lambda _: wake.set())
    cancellation = budget.cancellation
    with nullcontext() if cancellation is None else cancellation.notify(wake.set):
        thread.start()
        while not future.done():
            wake.wait(budget.seconds_left())
            if not future.done():
                budget.check()


def _fulfil(future: Future[Answer], work: Callable[[], Answer]) -> None:
    try:
        answer = work()
    except BaseException as failure:  # noqa: BLE001  # it is raised in the thread that waits
        future.set_exception(failure)
    else:
        future.set_result(answer)
