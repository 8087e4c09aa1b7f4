"""Omnigraph: a branchable lakehouse graph database.

Names are loaded when first used: `omnigraph --help` must not wait for Lance.
"""

from __future__ import annotations

# Not from typing, which takes longer to import than all else that a starter's client imports.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.changes.feed import Batch, CommitChanges
    from omnigraph.changes.graphs import GraphDiff
    from omnigraph.changes.records import RowChange
    from omnigraph.embedding.counts import EmbeddingCounts
    from omnigraph.engine.budget import Cancellation
    from omnigraph.engine.embedding_states import EmbeddingStatus
    from omnigraph.engine.queries import Explanation, QueryResult
    from omnigraph.errors import (
        AlreadyExistsError,
        BranchNotFoundError,
        CancelledError,
        CommitLetGoError,
        CommitNotFoundError,
        ConflictError,
        EmbeddingError,
        FeedGapError,
        FormatError,
        GraphNotFoundError,
        InternalError,
        InvalidInputError,
        InvalidNameError,
        InvalidParameterError,
        LimitExceededError,
        NotAllowedError,
        NotFoundError,
        OmnigraphError,
        OutcomeUnknownError,
        RecoveryNeededError,
        StaleHeadError,
        StorageError,
        TableConflictError,
        TagNotFoundError,
        TypeNotFoundError,
    )
    from omnigraph.evolution.run import SchemaResult, SchemaRevision
    from omnigraph.export.run import ExportResult
    from omnigraph.graph import Graph, init, open  # noqa: A004  # omnigraph.open is the API
    from omnigraph.integrity.violations import IntegrityError, Violation
    from omnigraph.lang.diagnostics import DiagnosticsError
    from omnigraph.load.results import LoadResult
    from omnigraph.maintenance.checking.report import CheckReport, Finding
    from omnigraph.maintenance.cleanup.results import CleanupResult
    from omnigraph.maintenance.embedding.run import EmbedResult
    from omnigraph.maintenance.index_list import IndexStatus
    from omnigraph.maintenance.indexes import IndexResult
    from omnigraph.maintenance.optimize import OptimizeResult, TableOptimization
    from omnigraph.maintenance.purge.results import PurgeResult
    from omnigraph.maintenance.repair import RepairResult
    from omnigraph.manifest.let_go import LetGo
    from omnigraph.manifest.schemas import AcceptedSchema
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.manifest.tags import Tag
    from omnigraph.merge.conflicts import Conflict, MergeConflictError
    from omnigraph.merge.run import MergeOutcome
    from omnigraph.model.commits import Commit
    from omnigraph.model.counts import Counts
    from omnigraph.model.followups import FollowUpFailure
    from omnigraph.model.settings import Setting
    from omnigraph.mutation.results import MutationResult
    from omnigraph.recovery.audit import RecoveryEntry
    from omnigraph.recovery.sidecars import Pending
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.findings import InvalidSchemaError
    from omnigraph.schema.parser import parse_schema
    from omnigraph.schema.plan import MigrationRefusedError, SchemaPlan
    from omnigraph.schema.steps import SchemaStep

__all__ = [
    "AcceptedSchema",
    "AlreadyExistsError",
    "Batch",
    "BranchNotFoundError",
    "Cancellation",
    "CancelledError",
    "Catalog",
    "CheckReport",
    "CleanupResult",
    "Commit",
    "CommitChanges",
    "CommitLetGoError",
    "CommitNotFoundError",
    "Conflict",
    "ConflictError",
    "Counts",
    "DiagnosticsError",
    "EmbedResult",
    "EmbeddingCounts",
    "EmbeddingError",
    "EmbeddingStatus",
    "Explanation",
    "ExportResult",
    "FeedGapError",
    "Finding",
    "FollowUpFailure",
    "FormatError",
    "Graph",
    "GraphDiff",
    "GraphNotFoundError",
    "IndexResult",
    "IndexStatus",
    "IntegrityError",
    "InternalError",
    "InvalidInputError",
    "InvalidNameError",
    "InvalidParameterError",
    "InvalidSchemaError",
    "LetGo",
    "LimitExceededError",
    "LoadResult",
    "MergeConflictError",
    "MergeOutcome",
    "MigrationRefusedError",
    "MutationResult",
    "NotAllowedError",
    "NotFoundError",
    "OmnigraphError",
    "OptimizeResult",
    "OutcomeUnknownError",
    "Pending",
    "PurgeResult",
    "QueryResult",
    "RecoveryEntry",
    "RecoveryNeededError",
    "RepairResult",
    "RowChange",
    "SchemaPlan",
    "SchemaResult",
    "SchemaRevision",
    "SchemaStep",
    "Setting",
    "Snapshot",
    "StaleHeadError",
    "StorageError",
    "TableConflictError",
    "TableOptimization",
    "Tag",
    "TagNotFoundError",
    "TypeNotFoundError",
    "Violation",
    "errors",
    "init",
    "open",
    "parse_schema",
]

_HOMES = {
    "AcceptedSchema": "omnigraph.manifest.schemas",
    "AlreadyExistsError": "omnigraph.errors",
    "Batch": "omnigraph.changes.feed",
    "BranchNotFoundError": "omnigraph.errors",
    "Cancellation": "omnigraph.engine.budget",
    "CancelledError": "omnigraph.errors",
    "Catalog": "omnigraph.schema.catalog",
    "CheckReport": "omnigraph.maintenance.checking.report",
    "CleanupResult": "omnigraph.maintenance.cleanup.results",
    "Commit": "omnigraph.model.commits",
    "CommitChanges": "omnigraph.changes.feed",
    "CommitLetGoError": "omnigraph.errors",
    "CommitNotFoundError": "omnigraph.errors",
    "Conflict": "omnigraph.merge.conflicts",
    "ConflictError": "omnigraph.errors",
    "Counts": "omnigraph.model.counts",
    "DiagnosticsError": "omnigraph.lang.diagnostics",
    "Explanation": "omnigraph.engine.queries",
    "ExportResult": "omnigraph.export.run",
    "EmbedResult": "omnigraph.maintenance.embedding.run",
    "EmbeddingCounts": "omnigraph.embedding.counts",
    "EmbeddingError": "omnigraph.errors",
    "EmbeddingStatus": "omnigraph.engine.embedding_states",
    "FeedGapError": "omnigraph.errors",
    "Finding": "omnigraph.maintenance.checking.report",
    "FollowUpFailure": "omnigraph.model.followups",
    "FormatError": "omnigraph.errors",
    "Graph": "omnigraph.graph",
    "GraphDiff": "omnigraph.changes.graphs",
    "GraphNotFoundError": "omnigraph.errors",
    "IndexResult": "omnigraph.maintenance.indexes",
    "IndexStatus": "omnigraph.maintenance.index_list",
    "IntegrityError": "omnigraph.integrity.violations",
    "InternalError": "omnigraph.errors",
    "InvalidInputError": "omnigraph.errors",
    "InvalidNameError": "omnigraph.errors",
    "InvalidParameterError": "omnigraph.errors",
    "InvalidSchemaError": "omnigraph.schema.findings",
    "LetGo": "omnigraph.manifest.let_go",
    "LimitExceededError": "omnigraph.errors",
    "LoadResult": "omnigraph.load.results",
    "MergeConflictError": "omnigraph.merge.conflicts",
    "MergeOutcome": "omnigraph.merge.run",
    "MigrationRefusedError": "omnigraph.schema.plan",
    "MutationResult": "omnigraph.mutation.results",
    "NotAllowedError": "omnigraph.errors",
    "NotFoundError": "omnigraph.errors",
    "OmnigraphError": "omnigraph.errors",
    "OptimizeResult": "omnigraph.maintenance.optimize",
    "OutcomeUnknownError": "omnigraph.errors",
    "Pending": "omnigraph.recovery.sidecars",
    "PurgeResult": "omnigraph.maintenance.purge.results",
    "QueryResult": "omnigraph.engine.queries",
    "RecoveryEntry": "omnigraph.recovery.audit",
    "RecoveryNeededError": "omnigraph.errors",
    "RepairResult": "omnigraph.maintenance.repair",
    "RowChange": "omnigraph.changes.records",
    "SchemaPlan": "omnigraph.schema.plan",
    "SchemaResult": "omnigraph.evolution.run",
    "SchemaRevision": "omnigraph.evolution.run",
    "SchemaStep": "omnigraph.schema.steps",
    "Setting": "omnigraph.model.settings",
    "Snapshot": "omnigraph.manifest.snapshot",
    "StaleHeadError": "omnigraph.errors",
    "StorageError": "omnigraph.errors",
    "TableConflictError": "omnigraph.errors",
    "TableOptimization": "omnigraph.maintenance.optimize",
    "Tag": "omnigraph.manifest.tags",
    "TagNotFoundError": "omnigraph.errors",
    "TypeNotFoundError": "omnigraph.errors",
    "Violation": "omnigraph.integrity.violations",
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
    "parse_schema": "omnigraph.schema.parser",
}


__version__: str
"""The release that is installed."""


if not TYPE_CHECKING:
    # A type checker would take this to have every name, however it is spelt.
    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "errors":
            return import_module("omnigraph.errors")
        if name == "__version__":
            from importlib.metadata import version

            return version("omnigraph")
        if name not in _HOMES:
            message = f"module 'omnigraph' has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(_HOMES[name]), name)
