"""Which engine runs a plan, and why: by the bytes it may touch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from omnigraph.engine.protocol import Data, EngineName
from omnigraph.errors import InvalidParameterError
from omnigraph.limits import LOCAL_BYTES_MAX
from omnigraph.model.arguments import checked_text
from omnigraph.relational.plans import Plan, TableRows

ENVIRONMENT_VARIABLE: Final = "OMNIGRAPH_ENGINE"
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and the reason in one sentence."""

    engine: EngineName
    why: str


def asked_engine(wanted: str | None) -> Choice | None:
    """The engine that is named by argument or environment; None where that is `auto`.

    Raises:
        InvalidParameterError: there is no engine of that name.
    """
    name = wanted or os.environ.get(ENVIRONMENT_VARIABLE) or AUTO
    if name == AUTO:
        return None
    if checked_text(name, "engine") not in set(EngineName):
        known = ", ".join([AUTO, *EngineName])
        where = "" if wanted else f", which ${ENVIRONMENT_VARIABLE} names"
        message = f"there is no engine {name!r}{where}"
        raise InvalidParameterError(message, hint=f"use one of {known}", name="engine")
    return Choice(EngineName(name), "it was asked for")


def choose(plan: Plan, data: Data, wanted: str | None) -> Choice:
    """The engine that was asked for, by argument or environment, or the one that fits.

    Raises:
        InvalidParameterError: there is no engine of that name.
    """
    if (asked := asked_engine(wanted)) is not None:
        return asked
    tables = {each.table for each in plan.relations.values() if isinstance(each, TableRows)}
    touched = sum(data.table(key).count_bytes() for key in tables)
    fits = touched <= LOCAL_BYTES_MAX
    engine = EngineName.LOCAL if fits else EngineName.SPARK
    relation = "at most" if fits else "more than"
    return Choice(
        engine, f"the plan reads tables of {touched:,} bytes, {relation} {LOCAL_BYTES_MAX:,}"
    )
