"""Groups: which fragments of a table are rewritten together. Pure functions of their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from omnigraph.limits import (
    BYTES_PER_FILE_MAX,
    DELETED_SHARE_MAX,
    FOLD_BYTES_PER_ROW,
    FOLD_DELETED_ROWS_MIN,
    FOLD_FRAGMENTS_MAX,
    FOLD_FRAGMENTS_MIN,
    FOLD_SIZE_MAX,
    FOLD_TOTAL_MAX,
    ROWS_PER_FILE_MAX,
    SMALL_FRAGMENT_SHARE,
    SMALL_FRAGMENTS_MAX,
)
from omnigraph.storage.compaction import FragmentSize

Group: TypeAlias = tuple[FragmentSize, ...]


def group_all(fragments: Iterable[FragmentSize]) -> tuple[Group, ...]:
    """Every group worth rewriting: small fragments that fit into one file, and worn ones.

    Rewriting them leaves nothing to group.
    """
    groups: list[list[FragmentSize]] = [[]]
    for fragment in fragments:
        if _is_small(fragment) or _is_worn(fragment):
            if not _fits([*groups[-1], fragment]):
                groups.append([])
            groups[-1].append(fragment)
    return tuple(tuple(group) for group in groups if len(group) > 1 or any(map(_is_worn, group)))


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
    tiers: dict[int, list[FragmentSize]] = {}
    for fragment in own:
        if _fold_size(fragment) < FOLD_SIZE_MAX:
            tiers.setdefault(_tier(fragment), []).append(fragment)
    for _, members in sorted(tiers.items()):
        if len(members) >= FOLD_FRAGMENTS_MIN:
            return _first(members)
    worn = (
        fragment
        for fragment in own
        if _is_worn(fragment)
        and fragment.deleted_count >= FOLD_DELETED_ROWS_MIN
        and _fold_size(fragment) <= FOLD_TOTAL_MAX
    )
    return tuple(sorted(worn, key=_fold_size)[:1])


def _is_small(fragment: FragmentSize) -> bool:
    return (
        fragment.row_count < ROWS_PER_FILE_MAX * SMALL_FRAGMENT_SHARE
        and fragment.byte_count < BYTES_PER_FILE_MAX * SMALL_FRAGMENT_SHARE
    )


def _is_worn(fragment: FragmentSize) -> bool:
    physical_rows = fragment.row_count + fragment.deleted_count
    return fragment.deleted_count > physical_rows * DELETED_SHARE_MAX


def _fits(group: Sequence[FragmentSize]) -> bool:
    return len(group) == 1 or (
        sum(fragment.row_count for fragment in group) <= ROWS_PER_FILE_MAX
        and sum(fragment.byte_count for fragment in group) <= BYTES_PER_FILE_MAX
    )


def _fold_size(fragment: FragmentSize) -> int:
    """The rows of a fragment; more if they are wide."""
    return max(1, fragment.row_count, fragment.byte_count // FOLD_BYTES_PER_ROW)


def _tier(fragment: FragmentSize) -> int:
    return (_fold_size(fragment).bit_length() - 1) // (FOLD_FRAGMENTS_MIN.bit_length() - 1)


def _first(members: Iterable[FragmentSize]) -> Group:
    """As many fragments as one fold may rewrite."""
    group: list[FragmentSize] = []
    total = 0
    for fragment in members:
        total += _fold_size(fragment)
        if len(group) == FOLD_FRAGMENTS_MAX or total > FOLD_TOTAL_MAX:
            break
        group.append(fragment)
    return tuple(group)
