"""Omnigraph: a branchable lakehouse graph database.

Names are loaded when first used: `omnigraph --help` must not wait for Lance.
"""

from __future__ import annotations

# Not from typing, which this module would import for nothing else.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.accessors.stored_queries import StoredParameter, StoredQuery
    from omnigraph.algorithms.results import AlgorithmResult
    from omnigraph.changes.diffs import Batch, CommitChanges, GraphDiff
    from omnigraph.changes.rows import RowChange
    from omnigraph.embedding.counts import EmbeddingCounts, EmbeddingStatus
    from omnigraph.engine.budget import Cancellation
    from omnigraph.engine.query_results import Explanation, QueryResult
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
        ProposalNotFoundError,
        RecoveryNeededError,
        StaleHeadError,
        StorageError,
        StreamError,
        TableConflictError,
        TagNotFoundError,
        TypeNotFoundError,
    )
    from omnigraph.evolution.results import SchemaResult, SchemaRevision
    from omnigraph.export.results import ExportResult
    from omnigraph.graph import (
        Graph,
        Target,
        import_original,
        init,
        open,  # noqa: A004  # omnigraph.open is the API
    )
    from omnigraph.integrity.violations import IntegrityError, Violation
    from omnigraph.lang.diagnostics import DiagnosticsError
    from omnigraph.load.results import LoadResult
    from omnigraph.maintenance.checking.report import CheckReport, Finding
    from omnigraph.maintenance.cleanup.results import CleanupResult
    from omnigraph.maintenance.copying.results import CopyResult
    from omnigraph.maintenance.purge.results import PurgeResult
    from omnigraph.maintenance.results import (
        EmbedResult,
        IndexResult,
        IndexStatus,
        OptimizeResult,
        RepairResult,
        TableOptimization,
    )
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.merge.conflicts import Conflict, MergeConflictError
    from omnigraph.merge.outcomes import MergeOutcome
    from omnigraph.model.commits import Commit
    from omnigraph.model.counts import Counts
    from omnigraph.model.followups import FollowUpFailure
    from omnigraph.model.let_go import LetGo
    from omnigraph.model.proposals import Proposal, Review
    from omnigraph.model.settings import Setting
    from omnigraph.model.streams import StreamBatch, StreamRecord
    from omnigraph.model.tags import Tag
    from omnigraph.mutation.results import MutationResult
    from omnigraph.originals.results import ImportResult
    from omnigraph.recovery.entries import RecoveryEntry
    from omnigraph.recovery.pending import Pending
    from omnigraph.remote.graph import RemoteGraph, connect
    from omnigraph.schema.accepted import AcceptedSchema
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.findings import InvalidSchemaError
    from omnigraph.schema.parser import parse_schema
    from omnigraph.schema.plan import MigrationRefusedError, SchemaPlan
    from omnigraph.schema.steps import SchemaStep
    from omnigraph.streams.handles import Ingest

__all__ = [
    "AcceptedSchema",
    "AlgorithmResult",
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
    "CopyResult",
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
    "ImportResult",
    "IndexResult",
    "IndexStatus",
    "Ingest",
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
    "Proposal",
    "ProposalNotFoundError",
    "PurgeResult",
    "QueryResult",
    "RecoveryEntry",
    "RecoveryNeededError",
    "RemoteGraph",
    "RepairResult",
    "Review",
    "RowChange",
    "SchemaPlan",
    "SchemaResult",
    "SchemaRevision",
    "SchemaStep",
    "Setting",
    "Snapshot",
    "StaleHeadError",
    "StorageError",
    "StoredParameter",
    "StoredQuery",
    "StreamBatch",
    "StreamError",
    "StreamRecord",
    "TableConflictError",
    "TableOptimization",
    "Tag",
    "TagNotFoundError",
    "Target",
    "TypeNotFoundError",
    "Violation",
    "connect",
    "errors",
    "import_original",
    "init",
    "open",
    "parse_schema",
]

_HOMES = {
    "AcceptedSchema": "omnigraph.schema.accepted",
    "AlgorithmResult": "omnigraph.algorithms.results",
    "AlreadyExistsError": "omnigraph.errors",
    "Batch": "omnigraph.changes.diffs",
    "BranchNotFoundError": "omnigraph.errors",
    "Cancellation": "omnigraph.engine.budget",
    "CancelledError": "omnigraph.errors",
    "Catalog": "omnigraph.schema.catalog",
    "CheckReport": "omnigraph.maintenance.checking.report",
    "CleanupResult": "omnigraph.maintenance.cleanup.results",
    "CopyResult": "omnigraph.maintenance.copying.results",
    "Commit": "omnigraph.model.commits",
    "CommitChanges": "omnigraph.changes.diffs",
    "CommitLetGoError": "omnigraph.errors",
    "CommitNotFoundError": "omnigraph.errors",
    "Conflict": "omnigraph.merge.conflicts",
    "ConflictError": "omnigraph.errors",
    "Counts": "omnigraph.model.counts",
    "DiagnosticsError": "omnigraph.lang.diagnostics",
    "Explanation": "omnigraph.engine.query_results",
    "ExportResult": "omnigraph.export.results",
    "EmbedResult": "omnigraph.maintenance.results",
    "EmbeddingCounts": "omnigraph.embedding.counts",
    "EmbeddingError": "omnigraph.errors",
    "EmbeddingStatus": "omnigraph.embedding.counts",
    "FeedGapError": "omnigraph.errors",
    "Finding": "omnigraph.maintenance.checking.report",
    "FollowUpFailure": "omnigraph.model.followups",
    "FormatError": "omnigraph.errors",
    "Graph": "omnigraph.graph",
    "GraphDiff": "omnigraph.changes.diffs",
    "GraphNotFoundError": "omnigraph.errors",
    "ImportResult": "omnigraph.originals.results",
    "IndexResult": "omnigraph.maintenance.results",
    "IndexStatus": "omnigraph.maintenance.results",
    "Ingest": "omnigraph.streams.handles",
    "IntegrityError": "omnigraph.integrity.violations",
    "InternalError": "omnigraph.errors",
    "InvalidInputError": "omnigraph.errors",
    "InvalidNameError": "omnigraph.errors",
    "InvalidParameterError": "omnigraph.errors",
    "InvalidSchemaError": "omnigraph.schema.findings",
    "LetGo": "omnigraph.model.let_go",
    "LimitExceededError": "omnigraph.errors",
    "LoadResult": "omnigraph.load.results",
    "MergeConflictError": "omnigraph.merge.conflicts",
    "MergeOutcome": "omnigraph.merge.outcomes",
    "MigrationRefusedError": "omnigraph.schema.plan",
    "MutationResult": "omnigraph.mutation.results",
    "NotAllowedError": "omnigraph.errors",
    "NotFoundError": "omnigraph.errors",
    "OmnigraphError": "omnigraph.errors",
    "OptimizeResult": "omnigraph.maintenance.results",
    "OutcomeUnknownError": "omnigraph.errors",
    "Pending": "omnigraph.recovery.sidecars",
    "Proposal": "omnigraph.model.proposals",
    "ProposalNotFoundError": "omnigraph.errors",
    "PurgeResult": "omnigraph.maintenance.purge.results",
    "QueryResult": "omnigraph.engine.query_results",
    "RecoveryEntry": "omnigraph.recovery.entries",
    "RecoveryNeededError": "omnigraph.errors",
    "RemoteGraph": "omnigraph.remote.graph",
    "RepairResult": "omnigraph.maintenance.results",
    "Review": "omnigraph.model.proposals",
    "RowChange": "omnigraph.changes.rows",
    "SchemaPlan": "omnigraph.schema.plan",
    "SchemaResult": "omnigraph.evolution.results",
    "SchemaRevision": "omnigraph.evolution.results",
    "SchemaStep": "omnigraph.schema.steps",
    "Setting": "omnigraph.model.settings",
    "Snapshot": "omnigraph.manifest.snapshot",
    "StaleHeadError": "omnigraph.errors",
    "StorageError": "omnigraph.errors",
    "StoredParameter": "omnigraph.accessors.stored_queries",
    "StoredQuery": "omnigraph.accessors.stored_queries",
    "StreamBatch": "omnigraph.model.streams",
    "StreamError": "omnigraph.errors",
    "StreamRecord": "omnigraph.model.streams",
    "TableConflictError": "omnigraph.errors",
    "TableOptimization": "omnigraph.maintenance.results",
    "Tag": "omnigraph.model.tags",
    "TagNotFoundError": "omnigraph.errors",
    "Target": "omnigraph.graph",
    "TypeNotFoundError": "omnigraph.errors",
    "Violation": "omnigraph.integrity.violations",
    "connect": "omnigraph.remote.graph",
    "import_original": "omnigraph.graph",
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
    "parse_schema": "omnigraph.schema.parser",
}


__version__: str
"""The release that is installed."""


if not TYPE_CHECKING:
    # A type checker would take this to have every name, however it is written.
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
