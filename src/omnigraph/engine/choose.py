"""The choice of an engine: what was asked for, what an input calls for, or else what the size is.

The rooms that have work for an engine measure it; nothing else decides (docs/decisions/0010).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from omnigraph.choices import EngineName, EngineRequest
from omnigraph.engine.extras import INSTALL_SPARK, is_spark_installed, require_spark
from omnigraph.errors import InvalidParameterError, OmnigraphError
from omnigraph.limits import LOCAL_BYTES_MAX
from omnigraph.model.arguments import require_text
from omnigraph.wording import count_of, size_of

if TYPE_CHECKING:
    from omnigraph.engine.protocol import Data
    from omnigraph.relational.plans import Plan

ENVIRONMENT_VARIABLE: Final = "OMNIGRAPH_ENGINE"


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and the reason in one sentence."""

    engine: EngineName
    why: str

    @property
    def is_bulk(self) -> bool:
        """Whether the work is a job of a cluster, whose writes nothing follows by itself."""
        return self.engine is EngineName.SPARK


@dataclass(frozen=True, slots=True)
class Measure:
    """One size of the work, and up to which size the local engine does it.

    Attributes:
        size_shown: The size in words, such as `about 4 changed rows`.
        limit_shown: The largest size that the local engine does, in words.
    """

    size: int
    local_max: int
    size_shown: str
    limit_shown: str

    @classmethod
    def of_count(cls, size: int, local_max: int, noun: str, *, is_estimate: bool = False) -> Self:
        """The measure of a count.

        >>> print(Measure.of_count(1200, 1000, "row to index"))
        1,200 rows to index; Spark is used above 1,000
        """
        noun, _, rest = noun.partition(" to ")
        shown = count_of(size, noun) + (rest and f" to {rest}")
        return cls(size, local_max, f"about {shown}" if is_estimate else shown, f"{local_max:,}")

    @classmethod
    def of_bytes(cls, size: int, local_max: int, words: str) -> Self:
        """A number of bytes, where `{}` is in the words.

        >>> print(Measure.of_bytes(134, 256 << 20, "{} of input"))
        134 B of input; Spark is used above 256 MiB
        """
        return cls(size, local_max, words.format(size_of(size)), size_of(local_max))

    @property
    def fits(self) -> bool:
        """Whether the local engine does work of this size."""
        return self.size <= self.local_max

    def __str__(self) -> str:
        return f"{self.size_shown}; Spark is used above {self.limit_shown}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """The engine that an input or a target calls for, whatever its size.

    Attributes:
        refusal: The error for callers who ask for the other engine; without one, they get it.
    """

    engine: EngineName
    why: str
    refusal: OmnigraphError | None = None


def by_size(
    wanted: str | None, measures: Iterable[Measure], constraint: Constraint | None = None
) -> Choice:
    """The engine that was asked for, by argument or environment; else the one that fits.

    That is the engine of the constraint. Without a constraint, it is Spark where one of the
    measures does not fit the local engine and Spark is installed, else the local engine.

    Args:
        measures: At least one, unless there is a constraint. They are read only where nothing else
            decides, so that a generator measures only then.
    """
    asked = asked_engine(wanted)
    if asked is not None:
        if constraint and constraint.refusal and asked.engine is not constraint.engine:
            raise constraint.refusal
        return asked
    if constraint is not None:
        return _require_installed(Choice(constraint.engine, constraint.why))
    first, *others = measures
    too_large = next((measure for measure in (first, *others) if not measure.fits), None)
    if too_large is None:
        return Choice(EngineName.LOCAL, str(first))
    if is_spark_installed():
        return Choice(EngineName.SPARK, str(too_large))
    why = f"{too_large.size_shown}; Spark is not installed ({INSTALL_SPARK})"
    return Choice(EngineName.LOCAL, why)


def asked_engine(wanted: str | None) -> Choice | None:
    """The engine that is named by argument or environment; None where that is `auto`."""
    name = wanted or os.environ.get(ENVIRONMENT_VARIABLE) or EngineRequest.AUTO
    if name == EngineRequest.AUTO:
        return None
    if require_text(name, "engine") not in set(EngineRequest):
        known = ", ".join(EngineRequest)
        where = "" if wanted else f", which ${ENVIRONMENT_VARIABLE} names"
        message = f"{name!r}{where} is not a valid engine"
        raise InvalidParameterError(message, hint=f"use one of {known}", name="engine")
    return _require_installed(Choice(EngineName(name), "requested"))


def _require_installed(choice: Choice) -> Choice:
    if choice.engine is EngineName.SPARK:
        require_spark()
    return choice


def why_not_local(measures: Iterable[Measure]) -> str | None:
    """Why work that only the local engine can do is not for it; None if it is."""
    choice = by_size(None, measures)
    return None if choice.engine is EngineName.LOCAL else choice.why


def follow_up(wanted: str | None, engine: EngineName) -> str | None:
    """What to ask for when work follows other work, which this engine did.

    What was too much for the local engine is too much for it afterwards, too.
    """
    return engine if engine is EngineName.SPARK else wanted


def measure_plan(plan: Plan, data: Data) -> Iterator[Measure]:
    """The bytes of the tables that a plan reads."""
    # Imported here: what measures other things has no plan.
    from omnigraph.relational.plans import tables_read

    byte_count = sum(data.table(key).count_bytes() for key in tables_read(plan))
    yield Measure.of_bytes(byte_count, LOCAL_BYTES_MAX, "tables of {}")
