"""Results of imports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.model.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class ImportResult:
    """A complete import.

    Attributes:
        target: The graph that was made.
        release: The release that wrote the source, and its `internal_schema`.
        commits: By branch, how many commits were made on it.
        recovered: By operation id, what became of each interrupted write of the source.
    """

    target: str
    release: str
    internal_schema: int
    commits: Mapping[str, int]
    recovered: Mapping[str, str]
