"""Claims: of the writers and recoveries that need a table, one at a time is at work.

Each puts its sidecar before it lists those of others, so of two that overlap at least one sees the
other, and whoever sees another takes its own away again and tries later. Both may see each other,
and then both yield: waiting a random time parts them (docs/decisions/0006).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from omnigraph.clock import Clock, back_off
from omnigraph.errors import ConflictError, ErrorCode, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import EXCLUSION_BACKOFF_SECONDS_MAX, EXCLUSION_SECONDS_MAX, LEASE_SECONDS
from omnigraph.model.ids import OperationId
from omnigraph.recovery.intents import Intent
from omnigraph.recovery.sidecars import Found, Sidecars, is_live


def claim(
    sidecars: Sidecars, clock: Clock, intent: Intent, *, besides: OperationId | None = None
) -> Found:
    """Put the intent's sidecar, once nobody else is at work on what it claims.

    Args:
        besides: An operation that does not count: the one that a recovery brings to an end.

    Returns:
        Every sidecar seen after ours was there. The caller is at work until it deletes its own.

    Raises:
        ConflictError: another was at work all the time. Our sidecar is gone again.
        RecoveryNeededError: a sidecar cannot be read. Ours is gone again.
    """
    give_up_at = clock.now() + timedelta(seconds=EXCLUSION_SECONDS_MAX)
    attempt = 0
    while True:
        sidecars.put(leased(intent, clock))
        hit(Failpoint.CLAIM_AFTER_PUT)
        with unclaimed_on_failure(sidecars, intent):
            found = sidecars.find(known=[intent])
            rival = _rival(found, intent, clock, besides)
        hit(Failpoint.CLAIM_AFTER_LIST)
        if rival is None:
            return found
        sidecars.delete(intent.operation_id)
        if clock.now() >= give_up_at:
            raise _busy(intent, rival)
        back_off(clock, attempt, seconds_max=EXCLUSION_BACKOFF_SECONDS_MAX)
        attempt += 1


def leased(intent: Intent, clock: Clock) -> Intent:
    """The intent with a lease that starts now."""
    return replace(intent, lease_until=clock.now() + timedelta(seconds=LEASE_SECONDS))


@contextmanager
def unclaimed_on_failure(sidecars: Sidecars, intent: Intent) -> Iterator[None]:
    """Take the intent's sidecar away again if the block fails: it had no effect yet."""
    try:
        yield
    except OmnigraphError:
        # What failed is what the caller must hear of. A sidecar that stays is harmless: there is
        # nothing to undo, and the next writer removes it.
        with suppress(OmnigraphError):
            sidecars.delete(intent.operation_id)
        raise


def _rival(
    found: Found, intent: Intent, clock: Clock, besides: OperationId | None
) -> Intent | None:
    own = (intent.operation_id, besides)
    for each in found.require_readable():
        if each.operation_id not in own and each.overlaps(intent) and is_live(each, clock.now()):
            return each
    return None


def _busy(intent: Intent, rival: Intent) -> ConflictError:
    tables = ", ".join(str(each.key) for each in intent.tables)
    message = (
        f"{tables} on branch {intent.branch} stayed busy for {EXCLUSION_SECONDS_MAX:.0f} s; "
        f"last seen at work: {rival.writer_kind} {rival.operation_id}"
    )
    return ConflictError(message, hint="try again", code=ErrorCode.TABLE_BUSY)
