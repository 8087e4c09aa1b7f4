"""The result of a copy."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.maintenance.checking.report import Finding
from omnigraph.model.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class CopyResult:
    """What a copy did. The target is complete.

    Attributes:
        branches: The branches of the source that were copied.
        commits: How many commits the target has now that it did not have before.
        files: How many files were transferred; those that the target had are not counted.
        size: Their size in bytes.
        findings: What a check of the target found wrong; a source that is not sound has the same.
    """

    source: str
    target: str
    branches: tuple[str, ...]
    commits: int
    files: int
    size: int
    findings: tuple[Finding, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether the check found nothing wrong."""
        return not self.findings
