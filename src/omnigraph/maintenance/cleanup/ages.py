"""Ages: how old something that nothing refers to must be, so that no operation can need it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from omnigraph.limits import LEASE_SECONDS, STAGED_SECONDS_MAX

NAMELESS_AGE_MIN: Final = timedelta(seconds=4 * LEASE_SECONDS)
"""The minimum age of a ref that no branch has, or of its branch's deletion. A new branch is named
within a lease, a branch without a name cannot be written to, and a merge publishes within a lease
of having read the name of its source."""

STAGED_AGE_MIN: Final = timedelta(seconds=2 * STAGED_SECONDS_MAX)
"""The minimum age of what a write creates before it claims its tables, and what nothing refers to
until it is published: files, previews, new tables, and table refs of existing branches. Only age
distinguishes those from garbage, and no write lands that takes half as long. Also the minimum age
of scratch, which may belong to a load on another machine."""


@dataclass(frozen=True, slots=True)
class Ages:
    """The ages that decide what a cleanup removes.

    Attributes:
        nameless: In place of `NAMELESS_AGE_MIN`.
        staged: In place of `STAGED_AGE_MIN`.
    """

    now: datetime
    nameless: timedelta = NAMELESS_AGE_MIN
    staged: timedelta = STAGED_AGE_MIN

    @classmethod
    def at(cls, now: datetime, age_min: timedelta | None = None) -> Self:
        """The ages at a time.

        Args:
            age_min: Replaces both, for callers that know that no other process is writing.
        """
        return cls(now) if age_min is None else cls(now, age_min, age_min)

    def is_staged_long_ago(self, written_at: datetime) -> bool:
        """Whether no write in progress can still need what was written then."""
        return written_at <= self.now - self.staged
