"""The classes whose values documents have: no others are ever made of what was received."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

_BY_MODULE: Final = {
    "accessors.stored_queries": ("StoredParameter", "StoredQuery"),
    "algorithms.requests": (
        "Components",
        "Degrees",
        "LabelPropagation",
        "PageRank",
        "ShortestPaths",
        "Triangles",
    ),
    "algorithms.results": ("AlgorithmResult", "Rounds"),
    "changes.diffs": ("Batch", "CommitChanges", "GraphDiff"),
    "choices": (
        "Analyzer",
        "EdgeDirection",
        "EmbedScope",
        "EmbedWhen",
        "EngineName",
        "EngineRequest",
        "ExportFormat",
        "IndexKind",
        "IndexSource",
        "IndexState",
        "Metric",
        "Mode",
        "OnError",
        "Op",
        "TableKind",
        "VectorKind",
    ),
    "documents.changes": ("SentChanges",),
    "documents.loads": ("InputKind", "SentInput"),
    "documents.results": ("QueryFacts",),
    "embedding.counts": ("EmbeddingCounts", "EmbeddingStatus"),
    "engine.query_results": ("Explanation",),
    "errors": ("ErrorCode",),
    "evolution.results": ("SchemaResult", "SchemaRevision"),
    "export.results": ("ExportResult",),
    "formats.compression": ("Compression",),
    "graph": ("Target",),
    "integrity.violations": ("Breach", "IntegrityReport", "Rule", "Violation"),
    "lang.diagnostics": ("Diagnostic", "Severity"),
    "lang.source": ("Source", "Span"),
    "load.column_maps": ("ColumnMap",),
    "load.dialects": ("CsvDialect",),
    "load.results": ("LoadResult",),
    "load.routes": ("ByColumn", "ByEnvelope"),
    "load.sources": ("Form",),
    "maintenance.checking.report": ("CheckReport", "Finding", "Invariant"),
    "maintenance.cleanup.results": (
        "CleanupResult",
        "LetGoCommit",
        "OrphanedRef",
        "TableCleanup",
        "Trouble",
    ),
    "maintenance.purge.results": (
        "HeldFiles",
        "Need",
        "PurgeResult",
        "PurgeRewrite",
        "StagedFiles",
    ),
    "maintenance.results": (
        "Drift",
        "EmbedResult",
        "IndexResult",
        "IndexStatus",
        "OptimizeResult",
        "RepairResult",
        "TableOptimization",
    ),
    "maintenance.retention": ("Reason",),
    "manifest.snapshot": ("Snapshot",),
    "merge.conflicts": ("Conflict", "ConflictKind"),
    "merge.outcomes": ("MergeOutcome", "Outcome"),
    "model.commits": ("Commit", "OperationKind"),
    "model.counts": ("Counts",),
    "model.followups": ("FollowUp", "FollowUpFailure"),
    "model.identities": ("TypeIdentity",),
    "model.ids": ("CommitId",),
    "model.let_go": ("LetGo",),
    "model.names": ("BranchName", "TagName", "TypeName"),
    "model.proposals": (
        "Approval",
        "Comment",
        "Ending",
        "Proposal",
        "ProposalState",
        "Review",
        "ReviewAction",
        "RowPlace",
    ),
    "model.settings": ("Setting", "SettingKey", "SettingSource"),
    "model.streams": ("StreamBatch", "StreamRecord", "StreamStep"),
    "model.tables": ("Fork", "TableKey", "TablePin", "Tombstone"),
    "model.tags": ("Tag",),
    "model.types": ("BlobType", "EnumType", "ListType", "Scalar", "VectorType"),
    "mutation.results": ("MutationResult",),
    "query.codes": ("QueryCode",),
    "recovery.entries": ("RecoveryEntry", "RecoveryKind", "TableMove"),
    "recovery.pending": ("Pending", "PendingWrite", "Unreadable"),
    "schema.accepted": ("AcceptedSchema",),
    "schema.catalog": (
        "Annotation",
        "Cardinality",
        "Catalog",
        "Check",
        "EdgeType",
        "Embed",
        "Index",
        "Interface",
        "Length",
        "NodeType",
        "Property",
        "Range",
        "TextOptions",
        "VectorOptions",
    ),
    "schema.change_codes": ("ChangeCode", "ChangeFinding"),
    "schema.matching": ("Matching",),
    "schema.plan": ("SchemaPlan",),
    "schema.steps": ("Cost", "Refusal", "RuleCheck", "RuleWord", "SchemaStep", "StepKind"),
    "schema.type_changes": ("ColumnChange", "ColumnSource"),
}
"""By module, the names of classes."""

_PLACES: Final = {
    "SchemaCode": ("omnigraph.schema.findings", "SchemaCode"),
    # A check has findings, too.
    "SchemaFinding": ("omnigraph.schema.findings", "Finding"),
    **{
        name: (f"omnigraph.{module}", name)
        for module, names in _BY_MODULE.items()
        for name in names
    },
}
"""By its name in documents, the module and the name of each class."""

_NAMES: Final = {place: name for name, place in _PLACES.items()}


def name_of(kind: type) -> str | None:
    """The name of a class in documents; None if they do not have it.

    >>> from omnigraph.model.counts import Counts
    >>> name_of(Counts), name_of(dict)
    ('Counts', None)
    """
    return _NAMES.get((kind.__module__, kind.__qualname__))


@cache
def class_named(name: str) -> type[Any] | None:
    """The class of a name; None if documents have none of that name."""
    place = _PLACES.get(name)
    if place is None:
        return None
    found: type[Any] = getattr(import_module(place[0]), place[1])
    return found


def every_name() -> tuple[str, ...]:
    """The names of all classes that documents have."""
    return tuple(_PLACES)
