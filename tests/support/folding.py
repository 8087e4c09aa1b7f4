"""Automatic folds that are due all the time, where the real thresholds would need many writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from omnigraph.maintenance import automatic


@contextmanager
def eager_folds(fragments: int = 4, deleted_rows: int = 2) -> Iterator[None]:
    """During the block, a writer folds so few fragments, and one with so few deleted rows."""
    first = replace(automatic._FIRST, fragment_count=fragments, deleted_count=deleted_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.maintenance.groups.FOLD_FRAGMENTS_MIN", fragments)
        patch.setattr("omnigraph.maintenance.groups.FOLD_DELETED_ROWS_MIN", deleted_rows)
        patch.setattr("omnigraph.maintenance.automatic.FOLD_DELETED_ROWS_MIN", deleted_rows)
        patch.setattr("omnigraph.maintenance.automatic._FIRST", first)
        yield
