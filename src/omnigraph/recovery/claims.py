"""Claims: of the writers and recoveries that need a table, one works on it at a time.

Each writes its sidecar before it lists the others, so of two that overlap at least one sees the
other; a process that sees another deletes its own sidecar and tries again later. Both may see each
other, and then both yield: a random backoff separates them (docs/decisions/0006).
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
from omnigraph.recovery.sidecars import Sidecars, SidecarSet, is_live


def claim(
    sidecars: Sidecars,
    clock: Clock,
    intent: Intent,
    *,
    excluding: OperationId | None = None,
    seconds_max: float = EXCLUSION_SECONDS_MAX,
) -> SidecarSet:
    """Write the intent's sidecar, once no other operation works on the tables it claims.

    Args:
        excluding: An operation that is ignored: the one that a recovery resolves.
        seconds_max: How long to wait for other operations.

    Returns:
        Every sidecar seen after ours was written. The claim lasts until the caller deletes its own.
    """
    give_up_at = clock.now() + timedelta(seconds=seconds_max)
    attempt = 0
    while True:
        sidecars.put(renew_lease(intent, clock))
        hit(Failpoint.CLAIM_AFTER_PUT)
        with release_on_failure(sidecars, intent):
            others = sidecars.find(known=[intent])
            rival = _rival(others, intent, clock, excluding)
        hit(Failpoint.CLAIM_AFTER_LIST)
        if rival is None:
            return others
        sidecars.delete(intent.operation_id)
        if clock.now() >= give_up_at:
            raise _busy_error(intent, rival, seconds_max)
        back_off(clock, attempt, seconds_max=EXCLUSION_BACKOFF_SECONDS_MAX)
        attempt += 1


def renew_lease(intent: Intent, clock: Clock) -> Intent:
    """The intent with a lease that starts now."""
    return replace(intent, lease_until=clock.now() + timedelta(seconds=LEASE_SECONDS))


@contextmanager
def release_on_failure(sidecars: Sidecars, intent: Intent) -> Iterator[None]:
    """Delete the intent's sidecar if the block fails: the operation had no effect yet."""
    try:
        yield
    except OmnigraphError:
        # The caller needs the first error. A sidecar that remains is harmless: there is nothing to
        # undo, and the next writer deletes it.
        with suppress(OmnigraphError):
            sidecars.delete(intent.operation_id)
        raise


def _rival(
    sidecars: SidecarSet, intent: Intent, clock: Clock, excluding: OperationId | None
) -> Intent | None:
    own = (intent.operation_id, excluding)
    for other in sidecars.require_readable():
        if other.operation_id not in own and other.overlaps(intent) and is_live(other, clock.now()):
            return other
    return None


def _busy_error(intent: Intent, rival: Intent, seconds: float) -> ConflictError:
    tables = ", ".join(str(table.key) for table in intent.tables)
    message = (
        f"{tables} on branch {intent.branch} stayed busy for {seconds:.0f} s; "
        f"last seen in progress: {rival.kind} {rival.operation_id}"
    )
    return ConflictError(message, hint="try again", code=ErrorCode.TABLE_BUSY)
