"""Budgets: where a limit comes from, and what a cancellation does."""

import pytest

from omnigraph.engine.budget import UNLIMITED, BudgetRequest, Cancellation
from omnigraph.errors import CancelledError, ErrorCode, InvalidParameterError, LimitExceededError
from omnigraph.model.query_limits import QueryLimits


def unread() -> QueryLimits:
    message = "the settings were read in vain"
    raise AssertionError(message)


def test_the_settings_are_not_read_where_a_call_gives_every_limit() -> None:
    request = BudgetRequest.parse(timeout="none", memory="1GB", max_rows=5)
    budget = request.budget(unread)
    assert (budget.timeout, budget.bytes_max, budget.rows_max) == (None, 10**9, 5)
    assert not budget.may_end_early


def test_what_a_call_gives_precedes_what_the_graph_says() -> None:
    graph = QueryLimits(memory=1 << 30, max_rows=7)
    budget = BudgetRequest.parse(max_rows="none").budget(lambda: graph)
    assert (budget.bytes_max, budget.rows_max, budget.ends_at) == (1 << 30, None, None)
    with pytest.raises(LimitExceededError, match="1GiB, the limit memory set for") as told:
        budget.require_bytes((1 << 30) + 1)
    assert told.value.code is ErrorCode.QUERY_MEMORY


def test_time_that_is_up_is_refused_with_its_limit() -> None:
    budget = BudgetRequest.parse(timeout="1ms").budget(QueryLimits)
    while budget.seconds_left():
        pass
    with pytest.raises(LimitExceededError, match="1ms, the limit timeout given") as told:
        budget.check()
    assert told.value.details == {"limit": "timeout", "value": "1ms", "source": "call"}


def test_a_cancellation_stays_and_tells_its_listeners_once_each() -> None:
    cancellation = Cancellation()
    told: list[str] = []
    budget = BudgetRequest.parse(cancel=cancellation).budget(QueryLimits)
    with cancellation.notify(lambda: told.append("early")):
        budget.check()
        cancellation.cancel()
    with cancellation.notify(lambda: told.append("late")):
        pass
    cancellation.cancel()
    assert told == ["early", "late"]
    with pytest.raises(CancelledError):
        budget.check()


def test_what_is_no_cancellation_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="cancel"):
        BudgetRequest.parse(cancel=True)  # type: ignore[arg-type]


def test_without_limits_nothing_is_refused() -> None:
    UNLIMITED.check()
    UNLIMITED.require_bytes(1 << 60)
    UNLIMITED.require_rows(1 << 60)
    assert UNLIMITED.seconds_left() is None
