"""Pieces of work side by side, for work that mostly waits for storage or for foreign code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def run_side_by_side(work: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of all pieces: the first is done by this thread, each other by one of its own.

    No thread is left when it returns or raises.

    >>> run_side_by_side([lambda: "a", lambda: "b"])
    ['a', 'b']
    """
    if not work:
        return []
    first, *others = work
    if not others:
        return [first()]
    with ThreadPoolExecutor(len(others), thread_name_prefix="omnigraph-search") as pool:
        futures = [pool.submit(each) for each in others]
        return [first(), *(future.result() for future in futures)]
