"""Settings: how this process starts Spark where it does not run yet. Imports nothing of Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

MASTER_VARIABLE: Final = "OMNIGRAPH_SPARK_MASTER"
ENVIRONMENT_VARIABLE: Final = "OMNIGRAPH_SPARK_ENVIRONMENT"
"""The archive of `omnigraph spark pack` that workers on other machines use."""


class Workload(Enum):
    """How long the work of a JVM that we start lasts."""

    SHORT = "seconds to a few minutes: quick to start, compiled once and lightly"
    LONG = "longer: slower to start, compiled for speed"


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How to start Spark where it does not run yet; a running session ignores all of this.

    Attributes:
        master: Any Spark master; when None, `OMNIGRAPH_SPARK_MASTER`, else `local[*]`.
        show_ui: Whether to serve Spark's web pages.
        work: What it will be used for.
        driver_memory: In Spark's notation of sizes; when None, a quarter of this machine's memory
            within bounds.
        cache_directory: Where start-up archives are kept; the user's cache when None.
        options: Further Spark options; they override ours.
    """

    master: str | None = None
    show_ui: bool = False
    work: Workload = Workload.LONG
    driver_memory: str | None = None
    cache_directory: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_master_chosen(self) -> bool:
        """Whether the caller or the environment names a master."""
        return bool(self.master or os.environ.get(MASTER_VARIABLE))

    @property
    def chosen_master(self) -> str:
        """The master that a start will use."""
        return self.master or os.environ.get(MASTER_VARIABLE) or "local[*]"


def packed_environment() -> str | None:
    """The archive that workers on other machines use, if there is one."""
    return os.environ.get(ENVIRONMENT_VARIABLE) or None


# Of the process and not of a thread or a context, as Spark's own session is.
_defaults = SessionSettings()


def default_settings() -> SessionSettings:
    """The settings of a start without explicit ones."""
    return _defaults


@contextmanager
def use_by_default(settings: SessionSettings) -> Iterator[None]:
    """Start Spark with these settings if the block is the first to need it."""
    global _defaults  # a process has one Spark, started in one way
    before, _defaults = _defaults, settings
    try:
        yield
    finally:
        _defaults = before
