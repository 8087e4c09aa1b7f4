"""Facts about keys: what the keys of a write, of committed rows and of edges say of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

KEY: Final = "key"
OWNER: Final = "owner"
"""The id of the row that has the key; only claims have it."""

_NONE: Final = pa.table({KEY: pa.array([], pa.utf8()), OWNER: pa.array([], pa.utf8())})


class KeyRole(IntEnum):
    """What keys are: of the rows that are written, committed, or required."""

    OWN = 0
    OLD = 1
    NEEDED = 2


class KeyKind(Enum):
    """Which facts about the keys of a space are of interest."""

    IDS = "whether ids are distinct, exist already, or are missing"
    CLAIMS = "whether two rows claim one key"
    COUNTS = "how many rows have one key"


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """What is true of at least one key of a space.

    Attributes:
        repeated: Two written rows have it.
        existing: A written row and a committed one have it.
        claimed: A written row and a committed row with another id have it.
        missing: It is required, and neither a written nor a committed row has it.
        most: The most written and committed rows that have one key of a written row.
        least: The fewest that have one required key; None if none is required.
    """

    repeated: bool = False
    existing: bool = False
    claimed: bool = False
    missing: bool = False
    most: int = 0
    least: int | None = None

    def __or__(self, other: KeyFacts) -> KeyFacts:
        counts = [count for count in (self.least, other.least) if count is not None]
        return KeyFacts(
            self.repeated or other.repeated,
            self.existing or other.existing,
            self.claimed or other.claimed,
            self.missing or other.missing,
            max(self.most, other.most),
            min(counts, default=None),
        )


def find_facts(kind: KeyKind, keys: Mapping[KeyRole, pa.Table]) -> KeyFacts:
    """The facts about all keys of some values, which have the columns `KEY` and `OWNER`."""
    own, old, needed = (keys.get(role, _NONE) for role in KeyRole)
    match kind:
        case KeyKind.IDS:
            return _id_facts(*(table[KEY].combine_chunks() for table in (own, old, needed)))
        case KeyKind.CLAIMS:
            return _claim_facts(own.combine_chunks(), old)
        case KeyKind.COUNTS:
            return _count_facts(*(table[KEY].combine_chunks() for table in (own, old, needed)))
        case _:
            assert_never(kind)


def _id_facts(own: pa.Array, old: pa.Array, needed: pa.Array) -> KeyFacts:
    distinct = own.unique()
    unmet = needed.filter(pc.invert(pc.is_in(needed, value_set=distinct))).unique()
    # A table has every id once.
    met = _count_in(old, unmet)
    return KeyFacts(
        repeated=len(distinct) < len(own),
        existing=_count_in(old, distinct) > 0,
        missing=met < len(unmet),
    )


def _claim_facts(own: pa.Table, old: pa.Table) -> KeyFacts:
    keys = own[KEY].combine_chunks()
    if len(keys.unique()) < len(keys):
        return KeyFacts(repeated=True)
    places = pc.index_in(old[KEY], value_set=keys)
    owners = old[OWNER].filter(pc.is_valid(places))
    claimants = own[OWNER].take(places.drop_null())
    return KeyFacts(claimed=pc.any(pc.not_equal(owners, claimants), min_count=0).as_py())


def _count_facts(own: pa.Array, old: pa.Array, needed: pa.Array) -> KeyFacts:
    counted = pa.concat_arrays([own, old]).value_counts()
    keys, counts = counted.field("values"), counted.field("counts")
    written = counts.filter(pc.is_in(keys, value_set=own.unique()))
    required = counts.take(pc.index_in(needed.unique(), value_set=keys))
    return KeyFacts(
        most=pc.max(written).as_py() or 0,
        least=None if not len(required) else pc.min(required.fill_null(0)).as_py(),
    )


def _count_in(values: pa.Array, among: pa.Array) -> int:
    if not len(values) or not len(among):
        return 0
    return pc.sum(pc.is_in(values, value_set=among)).as_py() or 0
