"""A graph's schema: `graph.schema`, and what is accepted as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import InvalidParameterError
from omnigraph.lang.source import Source
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_path, require_text, require_texts
from omnigraph.model.commits import OperationKind
from omnigraph.policy.actions import Action
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.texts import schema_text

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.evolution.apply import ChangeRequest
    from omnigraph.evolution.results import SchemaResult, SchemaRevision
    from omnigraph.evolution.run import SchemaChanges
    from omnigraph.graph import Graph
    from omnigraph.maintenance.purge.results import PurgeResult
    from omnigraph.maintenance.purge.run import Purges
    from omnigraph.maintenance.retention import RetentionRules
    from omnigraph.schema.plan import SchemaPlan
    from omnigraph.storage.store import Store
    from omnigraph.transaction.writes import WriteRequest

Fills = str | Collection[str] | Mapping[str, str] | None


class Schema:
    """A graph's schema: `graph.schema`."""

    def __init__(
        self,
        graph: Graph,
        store: Store,
        changes: Callable[[], SchemaChanges],
        purges: Callable[[], Purges],
        request: Callable[..., WriteRequest],
        retention_rules: Callable[..., RetentionRules],
    ) -> None:
        self._graph = graph
        self._store = store
        self._changes = changes
        self._purges = purges
        self._write_request = request
        self._retention_rules = retention_rules

    def show(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> AcceptedSchema:
        """The schema of the graph at one commit: its text and its catalog.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
        """
        snapshot = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        return self._accepted_at(snapshot)

    def plan(
        self,
        schema: str | PathLike[str] | Catalog,
        *,
        branch: str | None = None,
        fill: Fills = None,
        convert: str | Collection[str] | None = None,
    ) -> SchemaPlan:
        """The steps from a branch's schema to another one, with the cost of each.

        Of rows, only stored queries are read: those that would not fit any more are warnings.

        Args:
            schema: A path to a `.pg` file, the text itself, or a catalog built in Python.
            fill: `Type.property=expression`, several, or expressions by `Type.property`: the values
                of new properties.
            convert: `Type.property`, or several: values to convert, though some may not fit.

        Raises:
            DiagnosticsError: the schema has errors.
            InvalidInputError: a fill or a conversion has not its form, or a fill is no expression
                that is allowed.
            BranchNotFoundError: there is no such branch.
        """
        from omnigraph.accessors.stored_queries import find_breaking

        request = _change_request(accept_schema(schema), fill, convert, engine=None)
        snapshot = self._graph.full_snapshot(branch=branch)
        sight = self._graph.authority.sight(snapshot.branch)
        plan = self._changes().plan(snapshot, request, sight.sees)
        plan = sight.plan(plan, sight.hidden(key.type_name for key in snapshot.pins))
        stored = self._graph.queries.list(commit=snapshot.head.commit_id)
        return replace(plan, findings=(*plan.findings, *find_breaking(stored, plan.new)))

    def apply(
        self,
        schema: str | PathLike[str] | Catalog,
        *,
        branch: str | None = None,
        fill: Fills = None,
        convert: str | Collection[str] | None = None,
        engine: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expect_head: str | None = None,
    ) -> SchemaResult:
        """Change the schema of a branch, and its rows with it, in one commit.

        Earlier commits keep their schema and their rows; so do other branches.

        Args:
            schema: A path to a `.pg` file, the text itself, or a catalog built in Python.
            fill: `Type.property=expression`, several, or expressions by `Type.property`: the values
                of new properties, computed from other properties of the same row.
            convert: `Type.property`, or several: values to convert to another type, though some
                may not fit.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            expect_head: The commit, or a tag of it, that the branch must be at.

        Raises:
            DiagnosticsError: the schema has errors.
            MigrationRefusedError: a step is refused; `steps` says why, and what to do instead.
                Nothing changed.
            IntegrityError: rows break rules of the new schema, or values do not convert; its report
                lists them. Nothing changed.
            InvalidInputError: a fill or a conversion is wrong. Nothing changed.
            ConflictError: other processes kept changing the same tables. Nothing changed.
            NotAllowedError: the handle is on a point of history, or was opened read-only.
            OutcomeUnknownError: whether the commit landed is unknown; look for it before a retry.
        """
        request = _change_request(accept_schema(schema), fill, convert, engine=engine)
        write = self._write_request(OperationKind.SCHEMA_APPLY, branch, actor, message, expect_head)
        sight = self._graph.authority.sight_of(write)
        return sight.schema_result(self._changes().apply(write, request, sight.sees))

    def purge(
        self,
        schema: str | PathLike[str] | Catalog | None = None,
        *,
        branch: str | None = None,
        fill: Fills = None,
        convert: str | Collection[str] | None = None,
        keep_commits: int | None = None,
        older_than: str | timedelta | None = None,
        grace: str | timedelta | None = None,
        engine: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> PurgeResult:
        """Remove from the storage what a branch has dropped: its values are gone for good.

        Rows that are stored beside dropped values are written to new files first, in a commit that
        changes no row. Then all commits that hold dropped values expire together, once none of
        them was the newest of a branch within the grace: call it again until the result `is_done`.

        Args:
            schema: For `dry_run`: what a purge would do after a change to this schema.
            keep_commits: Refuse to purge what the newest commits of each branch hold, so many.
            older_than: Refuse to purge what younger commits hold. Without rules, those that the
                graph's settings were set to apply; without those, every commit is kept.
            grace: As for `Graph.cleanup`.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            dry_run: Report what would be done, and write nothing.

        Raises:
            NotAllowedError: a branch, a tag, a merge or a rule needs what would be purged; its
                `details` have the `needs`. Or the policy forbids maintenance. Nothing changed.
            InvalidParameterError: a rule makes no sense, or a schema was given without `dry_run`.
            ConflictError: other processes kept changing a table. Nothing was removed.
            StorageError: what may hold dropped values cannot be read. Nothing was removed.
        """
        from omnigraph.maintenance.purge.run import PurgeOrder

        if schema is not None and not dry_run:
            message = "purge does not take a schema"
            raise InvalidParameterError(message, hint="apply it, then purge", name="schema")
        self._graph.authority.require(Action.MAINTAIN)
        rules = self._retention_rules(keep_commits, older_than, grace)
        if not dry_run:
            write = self._write_request(OperationKind.OPTIMIZE, branch, actor, None)
            sight = self._graph.authority.sight_of(write)
            purge = PurgeOrder(write.branch, rules, engine, write.actor)
            return sight.purge(self._purges().run(purge))
        snapshot = self._graph.full_snapshot(branch=branch)
        plan = None
        if schema is not None:
            plan = self.plan(schema, branch=branch, fill=fill, convert=convert)
            plan.require_allowed()
        preview = self._purges().preview(PurgeOrder(snapshot.branch, rules, engine), plan)
        return self._graph.authority.sight(snapshot.branch).purge(preview)

    def diff(
        self, before: str | PathLike[str] | Source, after: str | PathLike[str] | Source
    ) -> SchemaPlan:
        """The steps between two schemas. Nothing is refused: it says what differs.

        Args:
            before: A branch, a commit, a tag, or the path of a `.pg` file; so is `after`. Between
                points of history types and properties are matched by their identities, else by
                their names and `@rename_from`.

        Raises:
            NotFoundError: there is no such branch, commit, tag or file.
            DiagnosticsError: a file has errors.
        """
        from omnigraph.evolution.run import compare_schemas

        old, new = map(self._point_or_text, (before, after))
        if isinstance(old, Snapshot) and isinstance(new, Snapshot):
            return self._changes().between(old, new)
        return compare_schemas(*map(self._accepted_at, (old, new)))

    def history(self, *, branch: str | None = None) -> tuple[SchemaRevision, ...]:
        """The commits of a branch that changed its schema, newest first, with their steps.

        Raises:
            BranchNotFoundError: there is no such branch.
        """
        return tuple(self._changes().history(self._graph.full_snapshot(branch=branch)))

    def _point_or_text(self, point: str | PathLike[str] | Source) -> Snapshot | AcceptedSchema:
        if isinstance(point, Source):
            return accept_schema(point)
        if isinstance(point, str) and not point.endswith(".pg"):
            return self._graph.full_point(point)
        return accept_schema(Path(require_path(point, "a branch, a commit, a tag or a file")))

    def _accepted_at(self, point: Snapshot | AcceptedSchema) -> AcceptedSchema:
        if isinstance(point, AcceptedSchema):
            return point
        from omnigraph.manifest import schemas

        return schemas.load(self._store.objects, point.schema_digest)


def _change_request(
    schema: AcceptedSchema,
    fill: Fills,
    convert: str | Collection[str] | None,
    *,
    engine: str | None,
) -> ChangeRequest:
    from omnigraph.evolution.apply import ChangeRequest
    from omnigraph.evolution.requests import parse_conversions, parse_fills

    if isinstance(fill, Mapping):
        fill = [f"{path}={require_text(text, path)}" for path, text in fill.items()]
    fills = parse_fills(require_texts(fill, "fill") or ())
    conversions = parse_conversions(require_texts(convert, "convert") or ())
    return ChangeRequest(schema, fills, conversions, engine)


def accept_schema(schema: str | PathLike[str] | Catalog | Source) -> AcceptedSchema:
    """The schema that a caller gave: a path, a text, or a catalog.

    Raises:
        DiagnosticsError: the schema has errors.
    """
    from omnigraph.schema.parser import parse_schema
    from omnigraph.schema.printer import print_schema

    if isinstance(schema, Catalog):
        return AcceptedSchema(schema, print_schema(schema))
    source = schema_text(schema)
    return AcceptedSchema(parse_schema(source.text, source.name), source.text)
