"""Groups: which fragments of a table are rewritten together. Pure functions of their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from omnigraph.limits import (
    BYTES_PER_FILE_MAX,
    FOLD_DELETED_ROWS_MIN,
    FOLD_FRAGMENTS_MIN,
    ROW_ID_BYTES_MAX,
    ROWS_PER_FILE_MAX,
)
from omnigraph.storage.compaction import FragmentSize

SMALL_FRAGMENT_SHARE: Final = 0.5
"""Share of a full file below which an optimize joins a fragment with others. Two fragments above it
do not fit into one file, so what is optimized stays as it is."""

DELETED_SHARE_MAX: Final = 0.1
"""Share of deleted rows above which a fragment is rewritten without them."""

SMALL_FRAGMENTS_MAX: Final = 32
"""Small fragments of a table that `optimize --if-needed` leaves as they are."""

FOLD_TIER_FACTOR: Final = 8
FOLD_JOINED_BYTES_MAX: Final = 1 << 20
"""Fragments of the next size that a fold takes along if there are so many with its result, and the
size of all: a row is rewritten once for each power of the factor, and more seldom if it is large.
"""

FOLD_SIZE_MAX: Final = 1 << 16
FOLD_BYTES_PER_ROW: Final = 1 << 9
"""Rows of a fragment that is not folded any more; wide rows count once for each so many bytes."""

FOLD_FRAGMENTS_MAX: Final = 256
FOLD_TOTAL_MAX: Final = 1 << 17
FOLD_BYTES_MAX: Final = 16 << 20
"""Fragments that one fold rewrites, their rows, counted likewise, and the size of their files:
about a fifth of a second, and 8 KB for each of the updates after which a table is folded whole."""


Group: TypeAlias = tuple[FragmentSize, ...]


def group_all(fragments: Iterable[FragmentSize]) -> tuple[Group, ...]:
    """Every group worth rewriting: small fragments that fit into one file, and worn ones.

    Each fragment joins the first group that it fits into, so no two groups fit into one file:
    rewriting them leaves nothing to group.
    """
    groups = _pack(each for each in fragments if _is_small(each) or _is_worn(each))
    return tuple(group for group in groups if len(group) > 1 or any(map(_is_worn, group)))


def group_stale(fragments: Iterable[FragmentSize]) -> tuple[Group, ...]:
    """The fragments whose files hold values of dropped columns, so that a rewrite ends that."""
    return tuple(_pack(fragment for fragment in fragments if fragment.is_stale))


def _pack(fragments: Iterable[FragmentSize]) -> Iterator[Group]:
    """Put each fragment into the first file that it fits into."""
    files: list[_File] = []
    for fragment in fragments:
        file = next((file for file in files if file.has_room(fragment)), None)
        if file is None:
            files.append(file := _File())
        file.add(fragment)
    return (tuple(file.group) for file in files)


def group_needed(fragments: Sequence[FragmentSize]) -> tuple[Group, ...]:
    """All groups, if queries are noticeably slower than they would be after a rewrite."""
    groups = group_all(fragments)
    small = sum(len(group) for group in groups)
    is_worn = any(_is_worn(fragment) for group in groups for fragment in group)
    return groups if small > SMALL_FRAGMENTS_MAX or is_worn else ()


def group_to_fold(fragments: Iterable[FragmentSize]) -> Group:
    """The one group that a writer rewrites after its commit; empty if it can wait.

    Fragments are folded by tiers of similar size, smallest first, so that a row is rewritten a
    logarithmic number of times. What a branch shares with its source is left to the source.
    """
    own = [fragment for fragment in fragments if not fragment.is_inherited]
    if _is_scattered(own):
        return tuple(own)
    tiers = _by_tier(own)
    for _, members in sorted(tiers.items()):
        if len(members) >= FOLD_FRAGMENTS_MIN:
            return _climb(_first(members), tiers)
    worn = [
        fragment
        for fragment in own
        if _is_worn(fragment) and fragment.deleted_count >= FOLD_DELETED_ROWS_MIN
    ]
    if worn and _fits_fold(own):
        # Most rows that were deleted there were updated, and are in the other fragments now:
        # together the row ids are a range again.
        return tuple(own)
    return tuple(sorted((each for each in worn if _fits_fold([each])), key=_fold_size)[:1])


def fragments_until_fold(fragments: Iterable[FragmentSize]) -> int:
    """How many more fragments a table without a group to fold takes at least."""
    tiers = _by_tier(each for each in fragments if not each.is_inherited)
    return max(1, FOLD_FRAGMENTS_MIN - max(map(len, tiers.values()), default=0))


def _is_small(fragment: FragmentSize) -> bool:
    return (
        fragment.row_count < ROWS_PER_FILE_MAX * SMALL_FRAGMENT_SHARE
        and fragment.byte_count < BYTES_PER_FILE_MAX * SMALL_FRAGMENT_SHARE
    )


def _is_worn(fragment: FragmentSize) -> bool:
    physical_rows = fragment.row_count + fragment.deleted_count
    return fragment.deleted_count > physical_rows * DELETED_SHARE_MAX


@dataclass(slots=True)
class _File:
    """The fragments that will be in one file."""

    group: list[FragmentSize] = field(default_factory=list)
    row_count: int = 0
    byte_count: int = 0

    def has_room(self, fragment: FragmentSize) -> bool:
        return (
            self.row_count + fragment.row_count <= ROWS_PER_FILE_MAX
            and self.byte_count + fragment.byte_count <= BYTES_PER_FILE_MAX
        )

    def add(self, fragment: FragmentSize) -> None:
        self.group.append(fragment)
        self.row_count += fragment.row_count
        self.byte_count += fragment.byte_count


def _fold_size(fragment: FragmentSize) -> int:
    """The rows of a fragment; more if they are wide."""
    return max(1, fragment.row_count, fragment.byte_count // FOLD_BYTES_PER_ROW)


def _is_foldable(fragment: FragmentSize) -> bool:
    """Whether one fold may rewrite several of its size."""
    return _fold_size(fragment) < FOLD_SIZE_MAX and fragment.byte_count <= FOLD_BYTES_MAX // 4


def _is_scattered(own: Sequence[FragmentSize]) -> bool:
    """Whether row ids take much space, and all rows are few enough to be sorted at once."""
    row_id_bytes = sorted(fragment.row_id_bytes for fragment in own)
    return sum(row_id_bytes[:-1]) > ROW_ID_BYTES_MAX and _fits_fold(own)


def _fits_fold(fragments: Sequence[FragmentSize]) -> bool:
    """Whether one fold may rewrite all of these."""
    return (
        len(fragments) <= FOLD_FRAGMENTS_MAX
        and sum(map(_fold_size, fragments)) <= FOLD_TOTAL_MAX
        and sum(fragment.byte_count for fragment in fragments) <= FOLD_BYTES_MAX
    )


def _by_tier(fragments: Iterable[FragmentSize]) -> Mapping[int, Sequence[FragmentSize]]:
    tiers: dict[int, list[FragmentSize]] = {}
    for fragment in fragments:
        if _is_foldable(fragment):
            tiers.setdefault(_tier(_fold_size(fragment)), []).append(fragment)
    return tiers


def _tier(size: int) -> int:
    return (size.bit_length() - 1) // (FOLD_TIER_FACTOR.bit_length() - 1)


def _climb(group: Group, tiers: Mapping[int, Sequence[FragmentSize]]) -> Group:
    """The group, with what would be enough to be folded with its result, and so on."""
    while True:
        size = sum(map(_fold_size, group))
        members = tiers.get(_tier(size), ())
        larger = (*group, *(each for each in members if each not in group))
        is_enough = len(larger) - len(group) + 1 >= FOLD_TIER_FACTOR
        byte_count = sum(fragment.byte_count for fragment in larger)
        if not is_enough or not _fits_fold(larger) or byte_count > FOLD_JOINED_BYTES_MAX:
            return group
        group = larger


def _first(members: Iterable[FragmentSize]) -> Group:
    """As many fragments as one fold may rewrite."""
    group: list[FragmentSize] = []
    for fragment in members:
        if not _fits_fold([*group, fragment]):
            break
        group.append(fragment)
    return tuple(group)
