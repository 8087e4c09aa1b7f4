"""Quarantine: a delta without the rows that break rules, and those rows with their reasons."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.protocol import Data, Engine
from omnigraph.errors import AlreadyExistsError, InvalidParameterError, StorageError
from omnigraph.formats.lines import NOT_FINITE, envelope_lines
from omnigraph.formats.sinks import STANDARD_OUTPUT
from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.deltas import POSITION, Delta
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.rows import RowRule
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.integrity.violations import IntegrityError, ToOrigin, Violation
from omnigraph.limits import QUARANTINE_ROUNDS_MAX
from omnigraph.load.shaping.batches import Reject
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.wording import count_of

Rows: TypeAlias = "Mapping[TableKey, pa.Table]"

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")

_NAN: Final = object()
"""To an engine a NaN equals itself, and to Python it does not."""


@dataclass(frozen=True, slots=True)
class SiftResult:
    """The rows that keep every rule together, and the others."""

    rows: Rows
    rejects: tuple[Reject, ...] = ()


def sift(
    rule_set: RuleSet,
    rows: Rows,
    to_delta: Callable[[Rows], Delta],
    data: Data,
    engine: Engine,
    to_origin: ToOrigin,
) -> SiftResult:
    """Leave out rows until every rule holds.

    Rows that break a rule together, such as two with one key, are all left out. That may break
    other rules: an edge whose node is left out is left out too.
    """
    rejects: dict[int, Reject] = {}
    for _ in range(QUARANTINE_ROUNDS_MAX):
        delta = to_delta(rows)
        report = evaluate(rule_set, delta, data, engine, to_origin=to_origin)
        if report.is_clean:
            return SiftResult(rows, tuple(rejects.values()))
        faults = _Faults(rule_set, delta, data, engine, to_origin).by_position()
        if not faults:
            raise IntegrityError(report)
        for key, table in rows.items():
            type_ = rule_set.catalog.type_of(key)
            rejects.update(
                (reject.position, reject) for reject in _to_rejects(type_, table, faults)
            )
        rows = {key: _drop_faulty(table, faults) for key, table in rows.items()}
    raise IntegrityError(report)


@dataclass(slots=True)
class _Faults:
    """The violations of a delta, by the row that is at fault."""

    rule_set: RuleSet
    delta: Delta
    data: Data
    engine: Engine
    to_origin: ToOrigin
    violations: dict[int, list[Violation]] = field(default_factory=dict)

    def by_position(self) -> dict[int, list[Violation]]:
        shape = self.delta.shape()
        for rules in self.rule_set.row_rules_for(shape):
            key = rules.type.table_key
            for rule in rules.rules:
                self._blame(rule, rules.offenders(rule, shape).list_all(), _by_position(key))
        for set_rule in self.rule_set.set_rules_for(shape):
            blame = blame_of(set_rule)
            if blame is not None:
                self._blame(set_rule, set_rule.offenders(shape).list_all(), blame)
        return self.violations

    def _blame(self, rule: RowRule | SetRule, question: Question, blame: Blame) -> None:
        given = {name: rows.of(self.delta) for name, rows in question.given.items()}
        offenders = self.engine.run(question.plan, replace(self.data, given=given)).to_pylist()
        table = self.delta.tables.get(blame.table)
        if not offenders or table is None or table.upserts is None:
            return
        violations = {blame.offender(row): rule.describe(row, self.to_origin) for row in offenders}
        columns = [table.upserts[name].to_pylist() for name in blame.columns]
        positions = table.upserts[POSITION].to_pylist()
        for position, *values in zip(positions, *columns, strict=True):
            violation = violations.get(tuple(map(_comparable, values)))
            if violation is not None:
                # Several rows may share a violation; each reports its own origin.
                own = replace(violation, origin=self.to_origin(position))
                self.violations.setdefault(position, []).append(own)


@dataclass(frozen=True, slots=True)
class Blame:
    """Which rows of a table an offender is about: those with its values in some columns."""

    table: TableKey
    columns: tuple[str, ...]
    values: tuple[str, ...]

    def offender(self, row: Mapping[str, object]) -> tuple[object, ...]:
        """The values of an offender."""
        return tuple(_comparable(row[name]) for name in self.values)


def _by_position(table: TableKey) -> Blame:
    return Blame(table, (POSITION,), ("position",))


def blame_of(rule: SetRule) -> Blame | None:
    """The rows at fault for the offenders of a rule; None where no written row is."""
    match rule:
        case DistinctIds(type_):
            return Blame(type_.table_key, ("id",), ("id",))
        case NewIds(type_):
            return _by_position(type_.table_key)
        case Endpoint(edge):
            return _by_position(edge.table_key)
        case Unique(type_, members):
            names = tuple(f"k{place}" for place in range(len(members)))
            return Blame(type_.table_key, members, names)
        case CardinalityMax(edge):
            return Blame(edge.table_key, ("src",), ("id",))
        case CardinalityMin(node=node):
            return Blame(node.table_key, ("id",), ("id",))
        case DanglingEdge():
            return None
        case _:
            assert_never(rule)


def _comparable(value: object) -> object:
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _mask(rows: pa.Table, faults: Mapping[int, object]) -> npt.NDArray[np.bool_]:
    is_faulty = pc.is_in(rows[POSITION], value_set=pa.array(list(faults), pa.int64()))
    return np.asarray(is_faulty.to_numpy(), dtype=np.bool_)


def _drop_faulty(rows: pa.Table, faults: Mapping[int, object]) -> pa.Table:
    return rows.filter(pa.array(~_mask(rows, faults)))


def _to_rejects(
    type_: SchemaType, rows: pa.Table, faults: Mapping[int, list[Violation]]
) -> Iterator[Reject]:
    rejected = rows.filter(pa.array(_mask(rows, faults)))
    for batch in rejected.to_batches():
        lines = envelope_lines(type_, batch).to_pybytes().splitlines()
        for position, line in zip(batch[POSITION].to_pylist(), lines, strict=True):
            yield Reject(position, line.decode(), tuple(faults[position]))


@dataclass(slots=True)
class RejectsFile:
    """The file for the rows that one load leaves out.

    Attributes:
        name: What whoever loads calls it, if that is not the name of its path.
        show: A violation as its reader may see it.
    """

    path: Path
    name: str | None = None
    show: Callable[[Violation], Violation] = lambda violation: violation
    is_written: bool = False

    @classmethod
    def of(cls, given: str | Path | RejectsFile) -> RejectsFile:
        """The file of a path, or the file itself."""
        return given if isinstance(given, RejectsFile) else cls(Path(given))

    def write(self, rejects: Iterable[Reject]) -> None:
        """Write one line of JSON for each row; the file of an earlier plan is replaced."""
        shown = (
            replace(each, violations=tuple(map(self.show, each.violations))) for each in rejects
        )
        write_rejects(self.path, shown)
        self.is_written = True

    def delete(self) -> None:
        """Delete the file, if one was written."""
        if self.is_written:
            with suppress(OSError):
                self.path.unlink()

    def note(self, count: int) -> str:
        """The note of the commit about so many rejected rows; otherwise empty."""
        if not count:
            return ""
        rows = count_of(count, "row")
        return f"{rows} rejected, see {self.name or self.path.name}"


def require_new(path: Path) -> None:
    """Refuse a path for rejected rows that exists already, unless it is an empty file."""
    if str(path) == STANDARD_OUTPUT:
        message = "rejected rows cannot be written to standard output"
        raise InvalidParameterError(message, hint="name a file for them", name="rejects")
    require_local(path)
    if os.path.lexists(path) and not (path.is_file() and not path.stat().st_size):
        message = f"{path} exists"
        hint = "choose another name for the rejected rows, or move it"
        raise AlreadyExistsError(message, hint=hint, path=str(path))


def require_local(path: Path) -> Path:
    """Return the path for rejected rows, if it is none of a URL.

    A path has lost a slash of a URL: `s3://lake/rejects` is `s3:/lake/rejects`, a directory here.
    """
    if (scheme := _SCHEME.match(str(path))) is None:
        return path
    message = f"rejected rows cannot be written to {scheme[1]}://, only to this machine"
    hint = "name a local path, and copy the file afterwards"
    raise InvalidParameterError(message, hint=hint, name="rejects")


def write_rejects(path: Path, rejects: Iterable[Reject]) -> None:
    """Write one line of JSON for each row; the file appears whole.

    The file of an earlier plan of the same load is replaced.
    """
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with waiting.open("wb") as file:
            for reject in rejects:
                text = json.dumps(_facts(reject), ensure_ascii=False, default=_format_value)
                # Half of a surrogate pair is then escaped as in JSON.
                file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        waiting.replace(path)
    except OSError as cause:
        waiting.unlink(missing_ok=True)
        message = f"the rejected rows cannot be written to {path}: {cause.strerror}"
        raise StorageError(message, hint="give another path; nothing was loaded") from cause


def _facts(reject: Reject) -> dict[str, Any]:
    return {
        "origin": reject.origin,
        "row": _row(reject.row),
        "violations": [
            {
                "rule": str(violation.rule),
                "type": violation.type_name,
                "properties": list(violation.properties),
                "reason": violation.message,
            }
            for violation in reject.violations
        ],
    }


def _row(row: object) -> object:
    """The row as a JSON value if it is one, else its text."""
    if not isinstance(row, str):
        return _finite(row)
    try:
        document: object = json.loads(row, parse_constant=str)
    except (ValueError, RecursionError):
        return row
    return document


def _finite(value: object) -> object:
    """The same value, with numbers that JSON does not have as text."""
    match value:
        case float() if not math.isfinite(value):
            return NOT_FINITE[str(value)]
        case Mapping():
            return {name: _finite(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case _:
            return value


def _format_value(value: object) -> str:
    return repr(value) if isinstance(value, bytes | memoryview) else str(value)
