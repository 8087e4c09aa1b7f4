"""Loads: the rows of an input, checked and written in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from omnigraph.choices import EmbedWhen, EngineName, Mode, OnDuplicate, OnError
from omnigraph.clock import Clock
from omnigraph.embedding.writes import WriteEmbedding
from omnigraph.engine.choose import Choice
from omnigraph.errors import InvalidParameterError, OmnigraphError, OutcomeUnknownError
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import IntegrityError, Rule
from omnigraph.load.choice import choose_engine, choose_finder
from omnigraph.load.dialects import CsvOptions
from omnigraph.load.duplicates import choose_on_duplicate
from omnigraph.load.plans import EngineLoad, Loader, LoadReport, LoadSetup, Stages
from omnigraph.load.positions import Origins
from omnigraph.load.quarantine import RejectsFile, require_new
from omnigraph.load.results import LoadResult, Progress, freeze_counts
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import Inputs, Source, SparkFile, resolve
from omnigraph.model.counts import Counts
from omnigraph.schema.catalog import Catalog
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.requests import RequestKey, Requests
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import WriteOutcome, WritePlan, WriteRequest

Loaders: TypeAlias = Callable[[EngineName], Loader]
"""Returns the loader of the engine of a name."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load, and how.

    Attributes:
        mode: `append`, `merge` or `overwrite`.
        on_error: `fail`, or `quarantine`, which needs `rejects`.
        rejects: Where rows that break rules are written, with their reasons; a new file.
        on_duplicate: `reject`, `first` or `last`; by mode and source when None.
        order_by: The column that DataFrames of Spark are ordered by.
        ignore_unknown: Whether values that no property takes are dropped instead of refused.
        engine: `local`, `spark` or `auto`.
        embed: `now`, `later` or `auto`.
        csv: How CSV files are read.
    """

    source: Source
    mode: str = "append"
    on_error: str = "fail"
    rejects: str | Path | RejectsFile | None = None
    ignore_unknown: bool = False
    engine: str | None = None
    progress: Progress | None = None
    embed: str = "auto"
    csv: CsvOptions | None = None
    on_duplicate: str | None = None
    order_by: str | None = None


class Loads:
    """Carries out the loads of one graph handle."""

    def __init__(
        self,
        transactions: Transactions,
        loaders: Loaders,
        clock: Clock,
        begin_embedding: Callable[[EmbedWhen], WriteEmbedding],
        requests: Requests,
    ) -> None:
        self._transactions = transactions
        self._requests = requests
        self._begin_embedding = begin_embedding
        self._loaders = loaders
        self._clock = clock
        self._rule_set = lru_cache(maxsize=8)(RuleSet.compile)

    def run(
        self, write: WriteRequest, request: LoadRequest, key: RequestKey | None = None
    ) -> LoadResult:
        """Load everything in one commit, or leave the graph as it is.

        Args:
            key: The key of the request, which is carried out once.
        """
        load = _Load(partial(self._begin, write, require_valid(request)))
        with closing(load):
            try:
                result = self._run(write, load, key)
            except OutcomeUnknownError:
                # The commit may be there, and its message names the rejected rows.
                raise
            except OmnigraphError as failure:
                load.delete_rejects()
                if isinstance(failure, IntegrityError):
                    load.explain(failure)
                raise
            return result

    def _run(self, write: WriteRequest, load: _Load, key: RequestKey | None) -> LoadResult:
        def execute(write: WriteRequest) -> LoadResult:
            landed = self._transactions.run(write, load.plan)
            begun = load.require_begun()
            begun.setup.stages.report("commit", 1, 1)
            return _result(begun, landed)

        if key is None:
            return execute(write)
        return self._requests.run(
            write,
            key,
            execute,
            read=LoadResult.from_json,
            preview=lambda landing: _result(load.require_begun(), landing),
        )

    def require_possible(self, request: LoadRequest, catalog: Catalog) -> None:
        """Refuse what `run` would refuse before it reads, for a graph of this schema."""
        self._resolve(require_valid(request), catalog)

    def _resolve(self, request: LoadRequest, catalog: Catalog) -> tuple[Inputs, Choice]:
        """The inputs, and the engine that reads them."""

        def find_files(url: str) -> Sequence[SparkFile]:
            return self._loaders(choose_finder(request.engine).engine).find_files(url)

        inputs = resolve(request.source, catalog, request.csv, find_files)
        if request.order_by is not None:
            inputs = inputs.ordered_by(request.order_by, catalog)
        _on_duplicate(request, inputs)
        return inputs, choose_engine(inputs, request.engine)

    def _begin(self, write: WriteRequest, request: LoadRequest, view: View) -> EngineLoad:
        """The load on the engine that fits its inputs; no row is read yet."""
        inputs, choice = self._resolve(request, view.catalog)
        view.admit(changes=inputs.named_types)
        setup = LoadSetup(
            inputs,
            choice,
            Mode(request.mode),
            Shaping(
                view.catalog,
                Origins.of_inputs(inputs.names).origin_of,
                self._clock.ulid(),
                ignores_unknown=request.ignore_unknown,
                keeps_rejects=request.rejects is not None,
            ),
            self._rule_set(view.catalog),
            view.snapshot.schema_digest,
            self._rejects_file(write, request),
            Stages(self._clock, request.progress),
            self._begin_embedding(EmbedWhen(request.embed)),
            _on_duplicate(request, inputs),
        )
        return self._loaders(setup.choice.engine).begin_load(setup)

    def _rejects_file(self, write: WriteRequest, request: LoadRequest) -> RejectsFile | None:
        """The file for rejected rows, with what the actor may be told of them."""
        if request.rejects is None:
            return None
        file = RejectsFile.of(request.rejects)
        file.show = self._transactions.policy.sight_of(write).violation
        return file


@dataclass(slots=True)
class _Load:
    """One load, which begins when its first view is known."""

    begin: Callable[[View], EngineLoad]
    engine_load: EngineLoad | None = None

    def require_begun(self) -> EngineLoad:
        assert self.engine_load is not None, "it was planned"
        return self.engine_load

    def plan(self, view: View) -> WritePlan[LoadReport]:
        if self.engine_load is None:
            self.engine_load = self.begin(view)
        return self.engine_load.plan(view)

    def explain(self, refusal: IntegrityError) -> None:
        """Give the refusal of rows a hint that fits the load."""
        if self.engine_load is not None:
            refusal.hint = _hint(refusal, self.engine_load.setup)

    def delete_rejects(self) -> None:
        if self.engine_load is not None and self.engine_load.setup.rejects is not None:
            self.engine_load.setup.rejects.delete()

    def close(self) -> None:
        if self.engine_load is not None:
            self.engine_load.close()


def _result(load: EngineLoad, landed: WriteOutcome[LoadReport]) -> LoadResult:
    """What a load did, once its transaction has ended."""
    setup = load.setup
    changes: dict[str, Counts] = {}
    unchanged: dict[str, int] = {}
    for key, pin in landed.view.snapshot.pins.items():
        if key not in landed.report.written:
            continue
        name, written = key.type_name, landed.report.written[key]
        if setup.mode is Mode.OVERWRITE:
            changes[name] = Counts(inserted=written, deleted=pin.row_count)
            continue
        inserted, updated, same = landed.upserts(key, written)
        changes[name] = Counts(inserted, updated)
        if same:
            unchanged[name] = same
    return LoadResult(
        commit_id=None if landed.commit is None else str(landed.commit.commit_id),
        branch=str(landed.view.snapshot.branch),
        mode=setup.mode,
        engine=setup.choice.engine,
        why=setup.choice.why,
        changes=freeze_counts(changes),
        rejected=landed.report.rejected,
        superseded=landed.report.superseded,
        seconds=MappingProxyType(dict(setup.stages.seconds)),
        warnings=landed.warnings,
        embedding=load.embedding,
        unchanged=MappingProxyType(unchanged),
    )


def _on_duplicate(request: LoadRequest, inputs: Inputs) -> OnDuplicate:
    is_ordered = not inputs.has_unordered_frames
    return choose_on_duplicate(request.on_duplicate, Mode(request.mode), is_ordered=is_ordered)


def _hint(refusal: IntegrityError, setup: LoadSetup) -> str:
    """The next step for rules that other arguments of the load decide about."""
    if setup.mode is Mode.APPEND and Rule.EXISTS in refusal.counts:
        return _REPLACING
    if Rule.KEY in refusal.counts and setup.on_duplicate is OnDuplicate.REJECT:
        return _DUPLICATES
    return refusal.hint


_DUPLICATES: Final = (
    "to load one row of each key, load with --on-duplicate first or last, or on_duplicate= in "
    "Python; rows of a DataFrame of Spark have no order, so name the column that orders them, too: "
    "order_by=; nothing was changed"
)
_REPLACING: Final = (
    'to replace rows that exist, load with --mode merge, or mode="merge" in Python; '
    "nothing was changed"
)


def require_valid(request: LoadRequest) -> LoadRequest:
    """Return the request, if its mode and `on_error` are known and its file for rejects is new."""
    for name, value, known in (
        ("mode", request.mode, Mode),
        ("on_error", request.on_error, OnError),
        ("embed", request.embed, EmbedWhen),
    ):
        if value not in set(known):
            message = f"{value!r} is not a valid {name}"
            hint = f"use one of {', '.join(known)}"
            raise InvalidParameterError(message, hint=hint, name=name)
    if (request.on_error == OnError.QUARANTINE) != (request.rejects is not None):
        message = "on_error quarantine and rejects go together"
        raise InvalidParameterError(message, hint="give both, or neither", name="rejects")
    if request.rejects is not None:
        require_new(RejectsFile.of(request.rejects).path)
    return request
