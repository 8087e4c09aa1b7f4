"""Schema changes from request to result: plan them, apply them, and find them in the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from omnigraph.changes.graphs import plan_between
from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.engine.protocol import Engine
from omnigraph.errors import CommitLetGoError, ConflictError, ErrorCode
from omnigraph.evolution.apply import ChangeReport, ChangeRequest, SchemaApplication
from omnigraph.evolution.backfill import ColumnFiller
from omnigraph.evolution.results import SchemaResult, SchemaRevision
from omnigraph.manifest import lineage
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.names import BranchName
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.plan import SchemaPlan, plan_by_hints
from omnigraph.schema.stored_queries import keep_declaration
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.view import View, view_at
from omnigraph.transaction.writes import WriteOutcome, WritePlan, WriteRequest


class SchemaBackend(Engine, ColumnFiller, Protocol):
    """What an engine does for schema changes: it runs plans and fills columns."""


def _keep_queries(request: ChangeRequest, old: Catalog) -> ChangeRequest:
    """The request, with the type of stored queries if the graph has it: users do not drop it."""
    text = keep_declaration(request.schema.text, request.schema.catalog, old)
    if text == request.schema.text:
        return request
    return replace(request, schema=AcceptedSchema(parse_schema(text), text))


class SchemaChanges:
    """The schema changes of one graph."""

    def __init__(
        self,
        manifest: Manifest,
        clock: Clock,
        transactions: Transactions,
        catalogs: Catalogs,
        backends: Callable[[EngineName], SchemaBackend],
    ) -> None:
        self._manifest = manifest
        self._clock = clock
        self._transactions = transactions
        self._catalogs = catalogs
        self._backends = backends

    def plan(
        self, snapshot: Snapshot, request: ChangeRequest, sees: Callable[[str], bool]
    ) -> SchemaPlan:
        """The steps that a change would take at a snapshot; no rows are read.

        Args:
            sees: Whether the actor may read a type; rows of others are not counted.
        """
        view = view_at(self._manifest.store, self._catalogs, snapshot)
        return self._application(_keep_queries(request, view.catalog), sees).steps(view)

    def apply(
        self, write: WriteRequest, request: ChangeRequest, sees: Callable[[str], bool]
    ) -> SchemaResult:
        """Carry out a schema change in one commit."""
        first_digest: str | None = None

        def plan(view: View) -> WritePlan[ChangeReport]:
            nonlocal first_digest
            wanted = _keep_queries(request, view.catalog)
            digest = view.snapshot.schema_digest
            first_digest = first_digest or digest
            if digest not in (first_digest, wanted.schema.digest):
                raise _overtaken_error(write.branch)
            application = self._application(wanted, sees)
            steps = application.steps(view)
            view.admit(changes=steps.changed_types, reads=application.reads(steps))
            return application.plan(steps, view)

        return _result(self._transactions.run(write, plan))

    def _application(
        self, request: ChangeRequest, sees: Callable[[str], bool]
    ) -> SchemaApplication:
        return SchemaApplication(
            self._manifest.store, self._clock, request, self._backends, self._backends, sees
        )

    def between(self, before: Snapshot, after: Snapshot) -> SchemaPlan:
        """The steps between the schemas of two commits, which names have no part in."""
        return plan_between(self._catalogs.of, before, after)

    def history(self, snapshot: Snapshot) -> Iterator[SchemaRevision]:
        """The commits of a branch that changed its schema, newest first."""
        history = self._manifest.history(snapshot)
        newer: Commit | None = None
        for commit in lineage.first_parents(snapshot.head.commit_id, history.find):
            if newer is not None and newer.schema_digest != commit.schema_digest:
                yield SchemaRevision(newer, self._steps(commit, newer))
            newer = commit

    def _steps(self, before: Commit, after: Commit) -> SchemaPlan | None:
        """The steps between the schemas of two commits; None if one of them expired."""
        try:
            return self.between(self._manifest.at(before), self._manifest.at(after))
        except CommitLetGoError:
            return None


def compare_schemas(before: AcceptedSchema, after: AcceptedSchema) -> SchemaPlan:
    """The steps between two schemas of which nothing is known but their texts.

    A type without rows accepts everything, so no step of it is refused.
    """
    counts = dict.fromkeys((type_.table_key for type_ in before.catalog.types), 0)
    return plan_by_hints(before.catalog, after.catalog, row_counts=counts)


def _overtaken_error(branch: BranchName) -> ConflictError:
    """The error for a change that lost its race with another one.

    It is not planned again: its text is a whole schema, and would undo the steps of the other.
    """
    message = f"another schema change of branch {branch} landed during this one"
    hint = "see 'omnigraph schema plan': steps that undo the other change are among them now"
    return ConflictError(message, hint=hint, code=ErrorCode.SCHEMA_CHANGED)


def _result(landed: WriteOutcome[ChangeReport]) -> SchemaResult:
    choice = landed.report.choice
    commit_id = None if landed.commit is None else str(landed.commit.commit_id)
    return SchemaResult(commit_id, landed.report.plan, choice.engine, choice.why, landed.warnings)
