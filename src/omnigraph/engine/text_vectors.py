"""Vectors of texts that queries look for, and the rows that have no current vector to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Final

import numpy as np

from omnigraph.clock import Clock
from omnigraph.embedding.counts import EmbeddingStatus
from omnigraph.engine.embedding_states import count_states
from omnigraph.engine.protocol import Data
from omnigraph.errors import ErrorCode, InvalidInputError, InvalidParameterError
from omnigraph.limits import SEARCH_TEXT_BYTES_MAX
from omnigraph.model.settings import EmbeddingSettings
from omnigraph.query import ir
from omnigraph.query.lowering.operands import Given
from omnigraph.relational.plans import Plan, SearchRows
from omnigraph.relational.searches import Nearness
from omnigraph.schema.embeds import EmbeddedVector
from omnigraph.storage.tables import Table
from omnigraph.wording import count_of

_KEPT_TEXTS_MAX: Final = 1024
_KEPT_STATES_MAX: Final = 256


class TextVectors:
    """The vectors of texts that queries look for, and the states of the rows that they search.

    Both are kept for the next query: a text by its model, states by the version of a table.
    """

    def __init__(self, settings: Callable[[], EmbeddingSettings], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._vectors: dict[tuple[str, int, str], tuple[float, ...]] = {}
        self._states: dict[tuple[object, ...], EmbeddingStatus] = {}

    def embed(
        self, searches: Sequence[ir.Nearest], given: Given, model: str | None
    ) -> dict[str, tuple[float, ...] | None]:
        """The vectors of the texts that a lowered query searches for, by its parameters."""
        vectors: dict[str, tuple[float, ...] | None] = {}
        for part in searches:
            if part.text is None or part.embedded is None:
                continue
            assert isinstance(part.query, ir.ParameterValue), "a text has one"
            text = given.known(part.text).value
            vectors[part.query.name] = None
            if text is not None:
                wanted = _with_model(part.embedded, model)
                vectors[part.query.name] = self._vector(wanted, _require_text(part, text))
        return vectors

    def _vector(self, vector: EmbeddedVector, text: str) -> tuple[float, ...]:
        key = vector.model, vector.dimension, text
        with self._lock:
            known = self._vectors.get(key)
        if known is None:
            # Imported here: most queries look for no text.
            from omnigraph.embedding.embedder import Embedder

            embedder = Embedder(self._settings(), self._clock)
            [made] = embedder.embed(vector.model, vector.dimension, [text]).values()
            known = tuple(np.asarray(made, np.float32).astype(float).tolist())
            with self._lock:
                if len(self._vectors) >= _KEPT_TEXTS_MAX:
                    self._vectors.clear()
                self._vectors[key] = known
        return known

    def require_made(self, searches: Sequence[ir.Nearest], data: Data, model: str) -> None:
        """Refuse a model other than the schema's that made none of the vectors that are searched.

        Whoever runs a query may name a model, and some models are directories of this machine: one
        that the graph knows nothing of is not even looked for.
        """
        for part in searches:
            if part.embedded is None or part.embedded.model == model:
                continue
            vector, table = _with_model(part.embedded, model), data.table(part.table)
            if not self._status(vector, table).current:
                raise _other_model_error(vector, table)

    def notes(
        self, searches: Sequence[ir.Nearest], data: Data, model: str | None
    ) -> tuple[str, ...]:
        """What searches do not see: rows without the vectors of their texts."""
        notes: dict[str, None] = {}
        for part in searches:
            if part.embedded is None:
                continue
            vector = _with_model(part.embedded, model)
            table = data.table(part.table)
            status = self._status(vector, table)
            if part.text is not None and status.stale and not status.current:
                raise _other_model_error(vector, table)
            if status.waiting:
                notes[_describe(status)] = None
        return tuple(notes)

    def _status(self, vector: EmbeddedVector, table: Table) -> EmbeddingStatus:
        key = str(table.address), vector
        with self._lock:
            known = self._states.get(key)
        if known is None:
            known = count_states(vector, table)
            with self._lock:
                if len(self._states) >= _KEPT_STATES_MAX:
                    self._states.clear()
                self._states[key] = known
        return known


def placeholders(searches: Sequence[ir.Nearest]) -> dict[str, tuple[float, ...]]:
    """Vectors in the place of those of texts, for a plan that is not run."""
    return {
        part.query.name: (1.0, *[0.0] * (part.embedded.dimension - 1))
        for part in searches
        if part.text is not None
        and part.embedded is not None
        and isinstance(part.query, ir.ParameterValue)
    }


def by_model(plan: Plan, model: str | None) -> Plan:
    """The plan that ranks by the vectors of another model than the schema's."""
    if model is None:
        return plan
    relations = {
        name: replace(relation, search=replace(relation.search, note_prefix=f"{model} "))
        if isinstance(relation, SearchRows)
        and isinstance(relation.search, Nearness)
        and relation.search.notes is not None
        else relation
        for name, relation in plan.relations.items()
    }
    stages = plan.stages
    if stages is not None:
        before = [replace(each, plan=by_model(each.plan, model)) for each in stages.before]
        stages = replace(stages, before=tuple(before), last=by_model(stages.last, model))
    paths = plan.paths
    if paths is not None:
        paths = replace(paths, plan=by_model(paths.plan, model))
    return replace(plan, relations=relations, stages=stages, paths=paths)


def nearest_parts(query: ir.ReadQuery) -> tuple[ir.Nearest, ...]:
    """The searches of a query among vectors."""
    expressions: list[ir.Expression] = []
    for selection in query.selections:
        expressions += [column.expression for column in selection.columns]
        expressions += [key.expression for key in selection.order]
    return tuple(
        part
        for expression in expressions
        for part in (expression.rankings if isinstance(expression, ir.Rrf) else (expression,))
        if isinstance(part, ir.Nearest)
    )


def _with_model(vector: EmbeddedVector, model: str | None) -> EmbeddedVector:
    return vector if model is None else replace(vector, model=model)


def _require_text(part: ir.Nearest, text: str) -> str:
    name = f"${part.text.name}: " if isinstance(part.text, ir.ParameterValue) else ""
    stripped = text.strip()
    if not stripped:
        message = f"{name}the search text is empty"
        raise InvalidParameterError(message, hint="give a text with words", name=name)
    size = len(text.encode())
    if size > SEARCH_TEXT_BYTES_MAX:
        message = f"{name}the search text has {size:,} bytes"
        hint = f"it may have {SEARCH_TEXT_BYTES_MAX:,}"
        raise InvalidParameterError(message, hint=hint, name=name)
    return stripped


def _describe(status: EmbeddingStatus) -> str:
    rows = count_of(status.waiting, "row")
    where = f"{status.type_name}.{status.property_name}"
    states = f"{status.stale:,} stale, {status.pending:,} pending"
    return f"nearest skips {rows} of {where} ({states}): run 'omnigraph embed'"


def _other_model_error(vector: EmbeddedVector, table: Table) -> InvalidInputError:
    models = sorted(_models_in(vector, table))
    made = f"by {' and '.join(models)}" if models else "from other texts, or by hand"
    message = f"the vectors of {vector.label} were made {made}, and none by {vector.model}"
    hint = "run 'omnigraph embed'"
    if models:
        hint += f", or look among the others: --embedding-model {models[0]}"
    return InvalidInputError(message, hint=hint, code=ErrorCode.EMBEDDING_MODEL, models=models)


def _models_in(vector: EmbeddedVector, table: Table) -> set[str]:
    models: set[str] = set()
    for batch in table.scan([vector.companion]):
        notes: list[str | None] = batch.column(0).to_pylist()
        models |= {note.rpartition(" ")[0] for note in notes if note}
    return models - {""}
