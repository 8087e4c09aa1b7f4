"""Results of exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.choices import EngineName
from omnigraph.model.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class ExportResult:
    """A complete export.

    Attributes:
        commit_id: The commit whose rows it has.
        target: The file or directory; `-` for standard output.
        rows: Rows by type, in the order in which they were written.
        files: Every file with rows, in order, below the target where that is a directory.
        engine: The engine that ran it, and `why` it was chosen.
        hidden: The types that the actor may not read, which are left out.
    """

    commit_id: str
    target: str
    format: str
    engine: EngineName
    why: str
    rows: Mapping[str, int]
    files: tuple[str, ...]
    hidden: tuple[str, ...] = ()
