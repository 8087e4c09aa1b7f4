// Written by `python -m tools.reference` from the OpenAPI document; change server/wire.py instead.

/** The consent of a reviewer to the source as it was at a commit. */
export interface ApprovalAnswer {
  actor: string;
  commit_id: string;
  at: string;
}

/** The commit of the source that was reviewed. */
export interface ApprovalBody {
  commit?: string | null;
}

/** What a page can offer to do to a branch. */
export type BranchAction = "mutate" | "branch_create" | "branch_delete" | "propose";

/** A branch, and its newest commit. */
export interface BranchAnswer {
  branch: string;
  head: CommitAnswer;
}

/** A branch to create. */
export interface BranchBody {
  branch?: string | null;
  commit?: string | null;
  version?: number | null;
  name: string;
}

/** Some branches. */
export interface BranchesAnswer {
  branches: BranchAnswer[];
  cursor: string | null;
}

/** A call of a method by a client in Python, as `documents.values` writes its values. */
export interface CallBody {
  target?: Record<string, unknown> | null;
  read_only?: boolean;
  actor?: string | null;
  arguments?: Record<string, unknown>;
}

/** A schema as a document, equal for equal schemas. */
export interface CatalogAnswer {
  format: number;
  interfaces?: Record<string, unknown>[];
  node_types?: Record<string, unknown>[];
  edge_types?: Record<string, unknown>[];
  [name: string]: unknown;
}

/** A commit of the feed, and what it changed. */
export interface ChangedCommitAnswer {
  commit: CommitAnswer;
  changes: Record<string, CountsAnswer>;
  rows?: Record<string, unknown>[] | null;
  [name: string]: unknown;
}

/** How one row changed: the row before it, unless it was inserted, and after it. */
export interface ChangedRowAnswer {
  kind: string;
  type: string;
  op: "insert" | "update" | "delete";
  id: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** Some changed rows, and how many there are in all: `total`, and by type in `changes`. */
export interface ChangedRowsAnswer {
  before: string;
  after: string;
  offset: number;
  total: number;
  changes: Record<string, CountsAnswer>;
  rows: ChangedRowAnswer[];
  hidden?: string[] | null;
}

/** Some commits of the feed, and the cursor after them. */
export interface ChangesAnswer {
  commits: ChangedCommitAnswer[];
  cursor: string;
  is_newest: boolean;
  hidden?: string[] | null;
}

/** A comment on a proposal, or on a row of it. */
export interface CommentAnswer {
  number: number;
  actor: string;
  at: string;
  text: string;
  row: RowPlaceAnswer | null;
}

/** A comment; `type` and `id` name a row that it is about. */
export interface CommentBody {
  text: string;
  type?: string | null;
  id?: string | null;
  property?: string | null;
}

/** One commit. */
export interface CommitAnswer {
  commit_id: string;
  branch: string;
  parent: string | null;
  merged_parent: string | null;
  actor: string | null;
  created_at: string;
  operation: string;
  message: string | null;
  [name: string]: unknown;
}

/** Some commits, newest first. */
export interface CommitsAnswer {
  commits: CommitAnswer[];
  cursor: string | null;
}

/** What two branches changed in ways that exclude each other, or a rule they break together. */
export interface ConflictAnswer {
  kind: string;
  type: string;
  id: string | null;
  property: string | null;
  base: unknown;
  ours: unknown;
  theirs: unknown;
  message: string;
  facet?: string | null;
  edges?: number;
  edge_counts?: Record<string, number>;
  reasons?: string[];
}

/** How many rows of a type. */
export interface CountsAnswer {
  inserted: number;
  updated: number;
  deleted: number;
}

/** A branch that was deleted, or would be. */
export interface DeletedBranchAnswer {
  branch: string;
  deleted: boolean;
}

/** A stored query that was deleted. */
export interface DeletedQueryAnswer {
  query: string;
  deleted: boolean;
}

/** A tag that was deleted. */
export interface DeletedTagAnswer {
  tag: string;
  deleted: boolean;
}

/** How two points of history differ; with `rows` if they were asked for. */
export interface DifferenceAnswer {
  before: string;
  after: string;
  engine: string;
  why: string;
  schema: Record<string, unknown>[];
  changes: Record<string, CountsAnswer>;
  rows?: Record<string, unknown>[] | null;
  hidden?: string[] | null;
}

/** A commit of a history that is to be drawn: with what points at it. */
export interface DrawnCommitAnswer {
  commit_id: string;
  branch: string;
  parent: string | null;
  merged_parent: string | null;
  actor: string | null;
  created_at: string;
  operation: string;
  message: string | null;
  branches: string[];
  tags: string[];
  [name: string]: unknown;
}

/** Who merged or closed a proposal, and when. */
export interface EndingAnswer {
  actor: string | null;
  at: string;
  commit_id: string | null;
  source_commit: string | null;
  base_commit: string | null;
}

/** What a caller may ask for: an engine by its name, or `auto`, which decides by size. */
export type EngineRequest = "auto" | "local" | "spark";

/** One node or edge, by column. */
export interface EntityAnswer {
  id: string;
  [name: string]: unknown;
}

/** The changes of one node or edge. */
export interface EntityHistoryAnswer {
  changes: Record<string, unknown>[];
  cursor: string | null;
}

/** How a query would run. */
export interface ExplainAnswer {
  engine: string;
  why: string;
  means: string;
  sql: string;
  reads: Record<string, string>;
  looks_up: string[];
  searches: Record<string, string>;
}

/** A read query to explain. */
export interface ExplainBody {
  branch?: string | null;
  commit?: string | null;
  version?: number | null;
  query: string;
  params?: Record<string, unknown> | null;
  name?: string | null;
  engine?: string | null;
  exact?: boolean | null;
  memory?: string | number | null;
}

/** What failed after a write, which has landed all the same. */
export interface FollowUpAnswer {
  message: string;
  [name: string]: unknown;
}

/** The served graphs. */
export interface GraphNamesAnswer {
  graphs: string[];
}

/** Some commits of a history, each before its parents. */
export interface HistoryAnswer {
  commits: DrawnCommitAnswer[];
  cursor: string | null;
}

/** How to run a stored query; `message` and `expect_head` are for one that changes the graph. */
export interface InvokeBody {
  branch?: string | null;
  commit?: string | null;
  version?: number | null;
  engine?: string | null;
  timeout?: string | number | null;
  memory?: string | number | null;
  max_rows?: number | null;
  params?: Record<string, unknown> | null;
  message?: string | null;
  expect_head?: string | null;
}

/** A load that outlasts its request. */
export interface JobAnswer {
  job_id: string;
  graph: string;
  actor: string | null;
  created_at: string;
  state: "queued" | "running" | "done" | "failed" | "cancelled" | "interrupted";
  progress: Record<string, (number | null)[]>;
  result: Record<string, unknown> | null;
  problem: Record<string, unknown> | null;
}

/** Some jobs, newest first. */
export interface JobsAnswer {
  jobs: JobAnswer[];
  cursor: string | null;
}

/** A token, and whose it is. */
export interface LoginAnswer {
  token: string;
  actor: string;
}

/** A code that is good for one login. */
export interface LoginBody {
  code: string;
}

/** The table that another writer changed: the version that was expected, and what it has now. */
export interface ManifestConflict {
  table_key: string | null;
  expected: number | null;
  actual: number | null;
}

/** What a merge did, or would do. */
export interface MergeAnswer {
  outcome: string;
  source: string;
  target: string;
  commit_id: string | null;
  changes: Record<string, CountsAnswer>;
  conflict_count: number;
  merge_conflicts: ConflictAnswer[];
  warnings: FollowUpAnswer[];
  dry_run: boolean;
  hidden?: string[] | null;
  [name: string]: unknown;
}

/** Two branches to merge; decisions as `ours`, `theirs`, or a list of them. */
export interface MergeBody {
  source: string;
  into?: string | null;
  resolve?: "ours" | "theirs" | Record<string, unknown>[] | null;
  strict_rows?: boolean;
  dry_run?: boolean;
  delete_branch?: boolean;
  engine?: string | null;
  message?: string | null;
  expect_source?: string | null;
  expect_head?: string | null;
}

/** What a load does with rows that exist. */
export type Mode = "append" | "merge" | "overwrite";

/** A query that inserts, updates or deletes. */
export interface MutateBody {
  query: string;
  params?: Record<string, unknown> | null;
  name?: string | null;
  branch?: string | null;
  message?: string | null;
  expect_head?: string | null;
  timeout?: string | number | null;
  embed?: string;
}

/** What a load does with several rows of one id. */
export type OnDuplicate = "reject" | "first" | "last";

/** What a load does with rows that break rules. */
export type OnError = "fail" | "quarantine";

/** Whether an actor may do something to branches, by branch, and if not, why. */
export interface PermissionsAnswer {
  actor: string | null;
  action: string;
  may: Record<string, boolean>;
  refusals: Record<string, string>;
}

/** How conflicts would be decided, and how many of the others to list. */
export interface PreviewBody {
  resolve?: "ours" | "theirs" | Record<string, unknown>[] | null;
  limit?: number;
}

/** What went wrong: RFC 9457, with our code, hint and details. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  error: string;
  code: string;
  cause: string;
  hint: string;
  retryable: boolean;
  request_id: string;
  manifest_conflict?: ManifestConflict | null;
  merge_conflicts?: ConflictAnswer[] | null;
  violations?: ViolationAnswer[] | null;
  [name: string]: unknown;
}

/** A proposal; one that is shown alone says where it stands, and what the actor may do. */
export interface ProposalAnswer {
  number: number;
  title: string;
  description: string;
  source: string;
  target: string;
  author: string;
  created_at: string;
  state: "open" | "merged" | "closed";
  approvals: ApprovalAnswer[];
  comments: CommentAnswer[];
  ending: EndingAnswer | null;
  source_commit?: string | null;
  base_commit?: string | null;
  approved_by?: string[] | null;
  approvals_needed?: number | null;
  is_approved?: boolean | null;
  actor?: string | null;
  may?: Record<string, boolean> | null;
  refusals?: Record<string, string> | null;
}

/** A proposal to make. */
export interface ProposalBody {
  source: string;
  title: string;
  into?: string;
  description?: string;
}

/** How to merge a proposal, and the commit of the source that was reviewed. */
export interface ProposalMergeBody {
  commit?: string | null;
  resolve?: "ours" | "theirs" | Record<string, unknown>[] | null;
  delete_branch?: boolean;
  engine?: string | null;
  message?: string | null;
}

/** Whether a proposal waits, and how it ended. */
export type ProposalState = "open" | "merged" | "closed";

/** Some proposals, newest first. */
export interface ProposalsAnswer {
  proposals: ProposalAnswer[];
  cursor: string | null;
}

/** The queries that were stored. */
export interface PutQueriesAnswer {
  queries: StoredQueryAnswer[];
}

/** The rows of a query, and where they were read. */
export interface QueryAnswer {
  commit_id: string;
  engine: string;
  why: string;
  notes: string[];
  columns: string[];
  rows: Record<string, unknown>[];
}

/** A read query. */
export interface QueryBody {
  branch?: string | null;
  commit?: string | null;
  version?: number | null;
  engine?: string | null;
  timeout?: string | number | null;
  memory?: string | number | null;
  max_rows?: number | null;
  query: string;
  params?: Record<string, unknown> | null;
  name?: string | null;
  exact?: boolean | null;
  embedding_model?: string | null;
}

/** Writes that run or were interrupted, and what became of earlier ones. */
export interface RecoveryAnswer {
  live: string[];
  interrupted: string[];
  unreadable: string[];
  recoveries: RecoveryEntryAnswer[];
  cursor: string | null;
}

/** What became of an interrupted write. */
export interface RecoveryEntryAnswer {
  operation_id: string;
  state: string;
  writer_kind: string;
  branch: string;
  actor: string | null;
  recovery_id: string;
  recovered_at: string;
  commit_id: string | null;
  tables: TableMoveAnswer[];
}

export type RootModel_Union_QueryAnswer__WriteAnswer__ = QueryAnswer | WriteAnswer;

/** What a comment is about: a row, or one property of it. */
export interface RowPlaceAnswer {
  type_name: string;
  id: string;
  property: string | null;
}

/** A schema, as text. */
export interface SchemaAnswer {
  schema: string;
  digest: string;
}

/** A schema to plan or to apply, as text. */
export interface SchemaBody {
  schema: string;
  branch?: string | null;
  fill?: string[] | null;
  convert?: string[] | null;
  engine?: string | null;
  message?: string | null;
  expect_head?: string | null;
}

/** A schema change that was made. */
export interface SchemaChangeAnswer {
  allowed: boolean;
  seconds_estimated: number;
  steps: Record<string, unknown>[];
  findings: Record<string, unknown>[];
  hidden?: string[] | null;
  commit_id: string | null;
  engine: string;
  why: string;
  [name: string]: unknown;
}

/** The steps of a schema change. */
export interface SchemaPlanAnswer {
  allowed: boolean;
  seconds_estimated: number;
  steps: Record<string, unknown>[];
  findings: Record<string, unknown>[];
  hidden?: string[] | null;
  [name: string]: unknown;
}

/** Who a request is from, the graphs that they may read something of, and the release here. */
export interface SessionAnswer {
  actor: string | null;
  graphs: string[];
  version: string;
}

/** The tables at one commit. */
export interface SnapshotAnswer {
  branch: string;
  manifest_version: number;
  commit: Record<string, unknown>;
  schema_digest: string;
  tables: Record<string, unknown>[];
  hidden?: string[] | null;
}

/** Whether a server lives, or takes requests. */
export interface StatusAnswer {
  status: string;
}

/** Queries to store, as text. */
export interface StoreBody {
  query: string;
  branch?: string | null;
  message?: string | null;
}

/** A parameter of a stored query. */
export interface StoredParameterAnswer {
  name: string;
  type: string;
  nullable: boolean;
}

/** Some stored queries. */
export interface StoredQueriesAnswer {
  queries: StoredQueryAnswer[];
  cursor: string | null;
}

/** A stored query. */
export interface StoredQueryAnswer {
  name: string;
  text: string;
  description: string | null;
  instruction: string | null;
  parameters: StoredParameterAnswer[];
  changes: boolean | null;
  fault: string | null;
}

/** What a recovery did to one table. */
export interface TableMoveAnswer {
  table_key: string;
  from: number;
  to: number;
}

/** A name of a commit. */
export interface TagAnswer {
  tag: string;
  commit_id: string;
  branch: string;
  created_at: string;
  actor: string | null;
  message: string | null;
}

/** A tag to create. */
export interface TagBody {
  branch?: string | null;
  commit?: string | null;
  version?: number | null;
  name: string;
  message?: string | null;
}

/** Some tags. */
export interface TagsAnswer {
  tags: TagAnswer[];
  cursor: string | null;
}

/** Data that breaks a rule of the schema. */
export interface ViolationAnswer {
  rule: string;
  type: string;
  properties: string[];
  id: string | null;
  value: unknown;
  origin: string;
  message: string;
  [name: string]: unknown;
}

/** What a write changed; no commit if nothing. */
export interface WriteAnswer {
  commit_id: string | null;
  branch: string;
  changes: Record<string, CountsAnswer>;
  warnings: Record<string, unknown>[];
  [name: string]: unknown;
}
