"""Wire shapes: bodies of requests, which pydantic checks, and answers, as the document has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

Name = Annotated[str, Field(max_length=1_000)]
Text = Annotated[str, Field(max_length=1 << 20)]
Decisions = Annotated[
    Literal["ours", "theirs"] | list[dict[str, Any]] | None,
    Field(
        description="How conflicts are decided: by side, or one by one. unique_violation and "
        "cardinality_violation cannot be decided for theirs."
    ),
]
Version = Annotated[int, Field(ge=0, le=1 << 53)]
Count = Annotated[int, Field(ge=0, le=1 << 53)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _PointBody(_Body):
    """A body that names a point of history: a branch, a commit, or a version of a branch."""

    branch: Name | None = None
    commit: Name | None = None
    version: Version | None = None

    @property
    def point(self) -> dict[str, Any]:
        """The point as arguments of the facade."""
        return {"branch": self.branch, "commit": self.commit, "version": self.version}


class _BudgetBody(_PointBody):
    """A body of what runs a query, and what it may spend; the server's own limits hold anyway."""

    engine: Name | None = None
    timeout: Name | float | None = None
    memory: Name | int | None = None
    max_rows: Count | None = None


class QueryBody(_BudgetBody):
    """A read query."""

    query: Text
    params: dict[str, Any] | None = None
    name: Name | None = None
    exact: bool | None = None
    embedding_model: Name | None = None


class ExplainBody(_PointBody):
    """A read query to explain."""

    query: Text
    params: dict[str, Any] | None = None
    name: Name | None = None
    engine: Name | None = None
    exact: bool | None = None
    memory: Name | int | None = None


class CallBody(_Body):
    """A call of a method by a client in Python, as `documents.values` writes its values.

    Attributes:
        target: The branch or commit of the client's handle.
    """

    target: dict[str, Any] | None = None
    read_only: bool = False
    actor: Name | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)


class MutateBody(_Body):
    """A query that inserts, updates or deletes."""

    query: Text
    params: dict[str, Any] | None = None
    name: Name | None = None
    branch: Name | None = None
    message: Text | None = None
    expect_head: Name | None = None
    timeout: Name | float | None = None
    embed: Name = "auto"


class StoreBody(_Body):
    """Queries to store, as text."""

    query: Text
    branch: Name | None = None
    message: Text | None = None


class InvokeBody(_BudgetBody):
    """How to run a stored query; `message` and `expect_head` are for one that changes the graph."""

    params: dict[str, Any] | None = None
    message: Text | None = None
    expect_head: Name | None = None


class BranchBody(_PointBody):
    """A branch to create."""

    name: Name


class TagBody(_PointBody):
    """A tag to create."""

    name: Name
    message: Text | None = None


class MergeBody(_Body):
    """Two branches to merge; decisions as `ours`, `theirs`, or a list of them."""

    source: Name
    into: Name | None = None
    resolve: Decisions = None
    strict_rows: bool = False
    dry_run: bool = False
    delete_branch: bool = False
    engine: Name | None = None
    message: Text | None = None
    expect_source: Name | None = None
    expect_head: Name | None = None


class ProposalBody(_Body):
    """A proposal to make."""

    source: Name
    title: Name
    into: Name = "main"
    description: Text = ""


class ApprovalBody(_Body):
    """The commit of the source that was reviewed."""

    commit: Name | None = None


class CommentBody(_Body):
    """A comment; `type` and `id` name a row that it is about."""

    text: Text
    type: Name | None = None
    id: Name | None = None
    property: Name | None = None


class PreviewBody(_Body):
    """How conflicts would be decided, and how many of the others to list."""

    resolve: Decisions = None
    limit: Count = 1_000


class ProposalMergeBody(_Body):
    """How to merge a proposal, and the commit of the source that was reviewed."""

    commit: Name | None = None
    resolve: Decisions = None
    delete_branch: bool = False
    engine: Name | None = None
    message: Text | None = None


class SchemaBody(_Body):
    """A schema to plan or to apply, as text."""

    schema_text: Text = Field(alias="schema")
    branch: Name | None = None
    fill: list[Text] | None = None
    convert: list[Name] | None = None
    engine: Name | None = None
    message: Text | None = None
    expect_head: Name | None = None


class LoginBody(_Body):
    """A code that is good for one login."""

    code: Name


class LoginAnswer(BaseModel):
    """A token, and whose it is."""

    token: str
    actor: str


class CountsAnswer(BaseModel):
    """How many rows of a type."""

    inserted: int
    updated: int
    deleted: int


class StatusAnswer(BaseModel):
    """Whether a server lives, or takes requests."""

    status: str


class SessionAnswer(BaseModel):
    """Who a request is from, the graphs that they may read something of, and the release here."""

    actor: str | None
    graphs: list[str]
    version: str


class GraphNamesAnswer(BaseModel):
    """The served graphs."""

    graphs: list[str]


class QueryAnswer(BaseModel):
    """The rows of a query, and where they were read."""

    commit_id: str
    engine: str
    why: str
    notes: list[str]
    columns: list[str]
    rows: list[dict[str, Any]]


class ExplainAnswer(BaseModel):
    """How a query would run."""

    engine: str
    why: str
    means: str
    sql: str
    reads: dict[str, str]
    looks_up: list[str]
    searches: dict[str, str]


class WriteAnswer(BaseModel):
    """What a write changed; no commit if nothing."""

    model_config = ConfigDict(extra="allow")

    commit_id: str | None
    branch: str
    changes: dict[str, CountsAnswer]
    warnings: list[dict[str, Any]]


class CommitAnswer(BaseModel):
    """One commit."""

    model_config = ConfigDict(extra="allow")

    commit_id: str
    branch: str
    parent: str | None
    merged_parent: str | None
    actor: str | None
    created_at: str
    operation: str
    message: str | None


class CommitsAnswer(BaseModel):
    """Some commits, newest first."""

    commits: list[CommitAnswer]
    cursor: str | None


class DrawnCommitAnswer(CommitAnswer):
    """A commit of a history that is to be drawn: with what points at it."""

    branches: list[str]
    tags: list[str]


class HistoryAnswer(BaseModel):
    """Some commits of a history, each before its parents."""

    commits: list[DrawnCommitAnswer]
    cursor: str | None


class BranchAnswer(BaseModel):
    """A branch, and its newest commit."""

    branch: str
    head: CommitAnswer


class BranchesAnswer(BaseModel):
    """Some branches."""

    branches: list[BranchAnswer]
    cursor: str | None


class PermissionsAnswer(BaseModel):
    """Whether an actor may do something to branches, by branch, and if not, why."""

    actor: str | None
    action: str
    may: dict[str, bool]
    refusals: dict[str, str]


class DeletedBranchAnswer(BaseModel):
    """A branch that was deleted, or would be."""

    branch: str
    deleted: bool


class TagAnswer(BaseModel):
    """A name of a commit."""

    tag: str
    commit_id: str
    branch: str
    created_at: str
    actor: str | None
    message: str | None


class TagsAnswer(BaseModel):
    """Some tags."""

    tags: list[TagAnswer]
    cursor: str | None


class DeletedTagAnswer(BaseModel):
    """A tag that was deleted."""

    tag: str
    deleted: bool


class ConflictAnswer(BaseModel):
    """What two branches changed in ways that exclude each other, or a rule they break together.

    `base`, `ours` and `theirs` are values of a property, or rows. `edges` counts the edges that
    were deleted along with the node that it decides about; `reasons` names rules that the row
    breaks besides.
    """

    kind: str
    type: str
    id: str | None
    property: str | None
    base: Any
    ours: Any
    theirs: Any
    message: str
    facet: str | None = None
    edges: int = 0
    edge_counts: dict[str, int] = {}
    reasons: list[str] = []


class FollowUpAnswer(BaseModel):
    """What failed after a write, which has landed all the same."""

    model_config = ConfigDict(extra="allow")

    message: str


class ManifestConflict(BaseModel):
    """The table that another writer changed: the version that was expected, and what it has now."""

    table_key: str | None
    expected: int | None
    actual: int | None


class ViolationAnswer(BaseModel):
    """Data that breaks a rule of the schema."""

    model_config = ConfigDict(extra="allow")

    rule: str
    type: str
    properties: list[str]
    id: str | None
    value: Any
    origin: str
    message: str


class Problem(BaseModel):
    """What went wrong: RFC 9457, with our code, hint and details.

    `code` is `conflict` for every 409 that comes of a concurrent change; `cause` says which one.
    """

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    error: str
    code: str
    cause: str
    hint: str
    retryable: bool
    request_id: str
    manifest_conflict: ManifestConflict | None = Field(
        None, description="Of a lost race about a table."
    )
    merge_conflicts: list[ConflictAnswer] | None = Field(
        None, description="Of a merge that needs decisions."
    )
    violations: list[ViolationAnswer] | None = Field(
        None, description="Of data that breaks rules: the first of each rule."
    )


class MergeAnswer(BaseModel):
    """What a merge did, or would do."""

    model_config = ConfigDict(extra="allow")

    outcome: str
    source: str
    target: str
    commit_id: str | None
    changes: dict[str, CountsAnswer]
    conflict_count: int
    merge_conflicts: list[ConflictAnswer]
    warnings: list[FollowUpAnswer]
    dry_run: bool
    hidden: list[str] | None = None


class ApprovalAnswer(BaseModel):
    """The consent of a reviewer to the source as it was at a commit."""

    actor: str
    commit_id: str
    at: str


class RowPlaceAnswer(BaseModel):
    """What a comment is about: a row, or one property of it."""

    type_name: str
    id: str
    property: str | None


class CommentAnswer(BaseModel):
    """A comment on a proposal, or on a row of it."""

    number: int
    actor: str
    at: str
    text: str
    row: RowPlaceAnswer | None


class EndingAnswer(BaseModel):
    """Who merged or closed a proposal, and when."""

    actor: str | None
    at: str
    commit_id: str | None
    source_commit: str | None
    base_commit: str | None


class ProposalAnswer(BaseModel):
    """A proposal; one that is shown alone says where it stands, and what the actor may do."""

    number: int
    title: str
    description: str
    source: str
    target: str
    author: str
    created_at: str
    state: Literal["open", "merged", "closed"]
    approvals: list[ApprovalAnswer]
    comments: list[CommentAnswer]
    ending: EndingAnswer | None
    source_commit: str | None = None
    base_commit: str | None = None
    approved_by: list[str] | None = None
    approvals_needed: int | None = None
    is_approved: bool | None = None
    actor: str | None = None
    may: dict[str, bool] | None = None
    refusals: dict[str, str] | None = None


class ProposalsAnswer(BaseModel):
    """Some proposals, newest first."""

    proposals: list[ProposalAnswer]
    cursor: str | None


class DifferenceAnswer(BaseModel):
    """How two points of history differ; with `rows` if they were asked for."""

    before: str
    after: str
    engine: str
    why: str
    # `schema` is a name of pydantic's own.
    schema_steps: list[dict[str, Any]] = Field(alias="schema")
    changes: dict[str, CountsAnswer]
    rows: list[dict[str, Any]] | None = None
    hidden: list[str] | None = None


class ChangedRowAnswer(BaseModel):
    """How one row changed: the row before it, unless it was inserted, and after it."""

    kind: str
    type: str
    op: Literal["insert", "update", "delete"]
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ChangedRowsAnswer(BaseModel):
    """Some changed rows, and how many there are in all: `total`, and by type in `changes`."""

    before: str
    after: str
    offset: int
    total: int
    changes: dict[str, CountsAnswer]
    rows: list[ChangedRowAnswer]
    hidden: list[str] | None = None


class ChangedCommitAnswer(BaseModel):
    """A commit of the feed, and what it changed."""

    model_config = ConfigDict(extra="allow")

    commit: CommitAnswer
    changes: dict[str, CountsAnswer]
    rows: list[dict[str, Any]] | None = None


class ChangesAnswer(BaseModel):
    """Some commits of the feed, and the cursor after them."""

    commits: list[ChangedCommitAnswer]
    cursor: str
    is_newest: bool
    hidden: list[str] | None = None


class EntityAnswer(BaseModel):
    """One node or edge, by column."""

    model_config = ConfigDict(extra="allow")

    id: str


class EntityHistoryAnswer(BaseModel):
    """The changes of one node or edge."""

    changes: list[dict[str, Any]]
    cursor: str | None


class SnapshotAnswer(BaseModel):
    """The tables at one commit."""

    branch: str
    manifest_version: int
    commit: dict[str, Any]
    schema_digest: str
    tables: list[dict[str, Any]]
    hidden: list[str] | None = None


class SchemaAnswer(BaseModel):
    """A schema, as text."""

    schema_text: str = Field(alias="schema")
    digest: str


class CatalogAnswer(BaseModel):
    """A schema as a document, equal for equal schemas."""

    model_config = ConfigDict(extra="allow")

    format: int
    interfaces: list[dict[str, Any]] = []
    node_types: list[dict[str, Any]] = []
    edge_types: list[dict[str, Any]] = []


class SchemaPlanAnswer(BaseModel):
    """The steps of a schema change."""

    model_config = ConfigDict(extra="allow")

    allowed: bool
    seconds_estimated: float
    steps: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    hidden: list[str] | None = None


class SchemaChangeAnswer(SchemaPlanAnswer):
    """A schema change that was made."""

    commit_id: str | None
    engine: str
    why: str


class StoredParameterAnswer(BaseModel):
    """A parameter of a stored query."""

    name: str
    type: str
    nullable: bool


class StoredQueryAnswer(BaseModel):
    """A stored query."""

    name: str
    text: str
    description: str | None
    instruction: str | None
    parameters: list[StoredParameterAnswer]
    changes: bool | None
    fault: str | None


InvokeAnswer = RootModel[QueryAnswer | WriteAnswer]
"""What a stored query reads, or changed."""


class StoredQueriesAnswer(BaseModel):
    """Some stored queries."""

    queries: list[StoredQueryAnswer]
    cursor: str | None


class PutQueriesAnswer(BaseModel):
    """The queries that were stored."""

    queries: list[StoredQueryAnswer]


class DeletedQueryAnswer(BaseModel):
    """A stored query that was deleted."""

    query: str
    deleted: bool


class JobAnswer(BaseModel):
    """A load that outlasts its request."""

    job_id: str
    graph: str
    actor: str | None
    created_at: str
    state: Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
    progress: dict[str, list[int | None]]
    result: dict[str, Any] | None
    problem: dict[str, Any] | None


class JobsAnswer(BaseModel):
    """Some jobs, newest first."""

    jobs: list[JobAnswer]
    cursor: str | None


class TableMoveAnswer(BaseModel):
    """What a recovery did to one table."""

    model_config = ConfigDict(populate_by_name=True)

    table_key: str
    start: int = Field(alias="from")
    to: int


class RecoveryEntryAnswer(BaseModel):
    """What became of an interrupted write."""

    operation_id: str
    state: str
    writer_kind: str
    branch: str
    actor: str | None
    recovery_id: str
    recovered_at: str
    commit_id: str | None
    tables: list[TableMoveAnswer]


class RecoveryAnswer(BaseModel):
    """Writes that run or were interrupted, and what became of earlier ones."""

    live: list[str]
    interrupted: list[str]
    unreadable: list[str]
    recoveries: list[RecoveryEntryAnswer]
    cursor: str | None
