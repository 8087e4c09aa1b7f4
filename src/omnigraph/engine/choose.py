"""Which engine runs a plan, and why: by the bytes it may touch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from omnigraph.choices import EngineName, EngineRequest
from omnigraph.engine.extras import INSTALL_SPARK, is_spark_installed, require_spark
from omnigraph.engine.protocol import Data
from omnigraph.errors import InvalidParameterError
from omnigraph.limits import LOCAL_BYTES_MAX
from omnigraph.model.arguments import checked_text
from omnigraph.relational.plans import Plan, TableRows

ENVIRONMENT_VARIABLE: Final = "OMNIGRAPH_ENGINE"


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and the reason in one sentence."""

    engine: EngineName
    why: str


def asked_engine(wanted: str | None) -> Choice | None:
    """The engine that is named by argument or environment; None where that is `auto`.

    Raises:
        InvalidParameterError: there is no engine of that name.
        InvalidInputError: it is Spark, which is not installed.
    """
    name = wanted or os.environ.get(ENVIRONMENT_VARIABLE) or EngineRequest.AUTO
    if name == EngineRequest.AUTO:
        return None
    if checked_text(name, "engine") not in set(EngineRequest):
        known = ", ".join(EngineRequest)
        where = "" if wanted else f", which ${ENVIRONMENT_VARIABLE} names"
        message = f"there is no engine {name!r}{where}"
        raise InvalidParameterError(message, hint=f"use one of {known}", name="engine")
    choice = Choice(EngineName(name), "it was asked for")
    if choice.engine is EngineName.SPARK:
        require_spark()
    return choice


def by_size(why: str, *, fits: bool) -> Choice:
    """The local engine for what fits it; else Spark, or the local one where that is not installed.

    Args:
        why: How large it is, and how large the local engine takes it.
    """
    if fits:
        return Choice(EngineName.LOCAL, why)
    if is_spark_installed():
        return Choice(EngineName.SPARK, why)
    return Choice(EngineName.LOCAL, f"{why}, and Spark is not installed ({INSTALL_SPARK})")


def choose(plan: Plan, data: Data, wanted: str | None) -> Choice:
    """The engine that was asked for, by argument or environment, or the one that fits.

    Raises:
        InvalidParameterError: there is no engine of that name.
        InvalidInputError: Spark was asked for, and is not installed.
    """
    if (asked := asked_engine(wanted)) is not None:
        return asked
    tables = {each.table for each in plan.relations.values() if isinstance(each, TableRows)}
    touched = sum(data.table(key).count_bytes() for key in tables)
    fits = touched <= LOCAL_BYTES_MAX
    relation = "at most" if fits else "more than"
    why = f"the plan reads tables of {touched:,} bytes, {relation} {LOCAL_BYTES_MAX:,}"
    return by_size(why, fits=fits)
