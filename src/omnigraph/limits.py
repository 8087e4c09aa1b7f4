"""Limits: every bound in one place, on retries, on memory, on the length of names."""

from __future__ import annotations

from typing import Final

PUBLISH_ATTEMPTS_MAX: Final = 5
"""Attempts of a publish that may lose their race before it reports contention."""

PUBLISH_BACKOFF_SECONDS_MAX: Final = 0.5

PUBLISH_TURN_SECONDS_MAX: Final = 2.0
"""How long a publish queues behind others on its machine before it races them."""

UPDATE_TURN_SECONDS_MAX: Final = 10.0
"""How long a conditional update on a local disk waits for another before it gives up."""

COPY_ATTEMPTS_MAX: Final = 5
"""How often a copy reads its source anew, of which cleanups removed what it was about to copy."""

COPY_THREADS: Final = 16
"""Files that a copy transfers at once."""

CLEANUP_THREADS: Final = 8
"""Versions of the manifest that a cleanup reads at once."""

CLEANUP_CHUNK_FILES: Final = 1000
"""Files that a cleanup deletes before it looks at its failpoints."""

NAMED_FILES_PER_CHUNK: Final = 1 << 17
"""Rows of a table's list of files by version that are held at a time."""

OBJECTS_PER_DELETE_MAX: Final = 1000
"""Objects that S3 deletes in one request."""

UPLOAD_PART_BYTES: Final = 16 << 20
UPLOAD_PARTS_AT_ONCE: Final = 4
"""A stream is sent to S3 in parts of this size, of which it takes 10,000, and a few at a time."""

RECENT_COMMITS_MAX: Final = 16
"""Commit rows kept in the manifest's first fragment before a publish folds them into a page.

Each commit writes those of the commits before it again: with more of them it gets larger, and with
fewer, more commits write a page, too.
"""

LINEAGE_PAGE_ROWS_MAX: Final = 4096
"""Commit rows in one page of lineage; a full page is never rewritten again."""

LINEAGE_JOIN_FACTOR: Final = 4
"""How many times as large as what is folded a page may be to be rewritten with it.

So pages grow by tiers: a row is rewritten a logarithmic number of times, and the number of pages
that are not full is logarithmic, too.
"""

KNOWN_PAGE_ROWS_MAX: Final = 8192
"""Commit rows of pages of lineage that a graph handle keeps in memory."""

KNOWN_COMMITS_MAX: Final = 32_768
"""Decoded commits of pages that a graph handle keeps, some 25 MB: decoding costs more than reading.
"""

ROWS_PER_FILE_MAX: Final = 1 << 20
BYTES_PER_FILE_MAX: Final = 512 << 20
"""A data file closes at whichever of the two it reaches first."""

PREVIEW_ATTEMPTS_MAX: Final = 4
"""Random version numbers that are tried for the preview of a write; of 2**63, all are free."""

KEYS_PER_LOOKUP_MAX: Final = 10_000
"""Ids looked up in a table by filter; above it, reading the id column once is cheaper."""

KEYS_PER_INDEX_LOOKUP_MAX: Final = 200_000
"""The same if an index covers them and the table has many rows per key; one filter has them all."""

ROWS_READ_PER_KEY: Final = 64
"""About how many rows of one column are read in the time of one lookup in an index."""

PICKED_SHARE_MAX: Final = 1 / 32
"""Share of a large fragment's rows that are read by address; for more, all are read."""

SIFTED_BYTES: Final = 128 << 20
"""About how much of a table is held while it is filtered by many ids.

The ids are hashed again for each part, so small parts are expensive."""

WIDE_BATCH_BYTES: Final = 8 << 20
"""About how many bytes of vectors and blobs are held while their rows are compared or written."""

KEPT_FRAGMENT_ROWS_MAX: Final = 1 << 12
"""Rows of an unindexed fragment whose ids are kept in memory for lookups."""

KEPT_LOOKUP_ROWS_MAX: Final = 1 << 17
"""Rows that one lookup finds in memory; fragments beyond are scanned."""

KEPT_VALUES_BYTES_MAX: Final = 64 << 20
"""Memory that a graph handle spends on looking rows up without an index."""

STALE_VALUES_MAX: Final = 1 << 12
"""Values of files that a version has no more, beyond as many as it has, before they are dropped."""

OPENED_FRAGMENTS_MAX: Final = 64
"""Indexed fragments that a lookup names one by one; beyond, it queries the index for all."""

WHOLE_FRAGMENTS_MAX: Final = 2
"""Indexed fragments, each of one request, that a lookup reads whole: an index takes as many."""

SELECTED_TABLE_ROWS_MIN: Final = 1 << 12
"""Rows of a table below which a filter on indexed columns is not looked up but scanned."""

SELECTED_SHARE_MAX: Final = 1 / 16
"""The share of a table's rows up to which a filter is answered by indexes. Measured: scattered rows
are found as fast by a scan from about a tenth on, and from a quarter on almost twice as fast."""

SELECTED_ROWS_MAX: Final = 200_000
"""Rows that indexes find for one relation of a query; these are held in memory."""

UNINDEXED_KEYS_MAX: Final = 100
"""Ids a query carries to a table without an index; for more, a join in memory is faster."""

REDUCED_KEYS_MAX: Final = 10_000
"""Ids a query may carry from one relation to the next before it scans the table instead."""

LOCAL_BYTES_MAX: Final = 4 << 30
"""Bytes of table data that the local engine processes before `auto` chooses Spark."""

QUERY_BYTES_MIN: Final = 16_000_000
"""The least memory that a query can be limited to: DuckDB allocates about this much for each."""

IDLE_DATABASES_MAX: Final = 2
"""Databases of bounded memory that are kept for the next query with the same limit."""

RESULT_BATCH_ROWS: Final = 1 << 16
"""Rows of a result that arrive at once where the bytes of a result are counted."""

BRIEF_COMBINATIONS_MAX: Final = 1 << 20
"""Combinations of rows up to which a statement ends at once, whatever it does with them. To wait
for another thread costs as much as a small one takes."""

CANCELLED_JOBS_SECONDS_MAX: Final = 0.5
"""How long the caller of a query on Spark waits for its jobs to end when it was cancelled."""

INTERRUPT_SECONDS: Final = 0.02
"""How often a run that has to end is interrupted until it does: one that starts forgets earlier
interrupts."""

MANIFEST_STATES_MAX: Final = 8
"""Manifest states that a graph handle keeps; each is as large as the schema has types."""

KEPT_TABLE_BYTES_MAX: Final = 256 << 20
"""Data files of a table whose columns the local engine reads into memory to join them."""

KEPT_COLUMNS_BYTES_MAX: Final = 512 << 20
"""Columns that a graph handle keeps in memory for the next query."""

KEPT_COMPARISONS_BYTES_MAX: Final = 256 << 20
"""Memory that a server spends on differences of tables, whose pages are read one after another."""

KEPT_COMPARISONS_MAX: Final = 1 << 10
"""Differences of tables that a server keeps, however small they are."""

KEPT_DELETIONS_BYTES_MAX: Final = 32 << 20
"""Memory that a graph handle spends on knowing which rows of fragments are deleted."""

KEPT_TOPOLOGIES_BYTES_MAX: Final = 1 << 30
"""Arrays of node numbers that a graph handle keeps: those of about a hundred million edges."""

NUMBERS_PER_ROW_MAX: Final = 4
"""Numbers per node up to which arrays are indexed by them: deleted nodes leave theirs unused."""

NUMBERED_IN_MEMORY_ROWS_MAX: Final = 1 << 12
"""Nodes of a table whose ids are found by a dictionary; of more, by an index."""

PATCHED_PAIRS_MIN: Final = 1 << 12
PATCHED_SHARE_MAX: Final = 1 / 32
"""Pairs that may differ from arrays, as a number and as a share of them, before they are joined."""

FOLLOWED_ROWS_MIN: Final = 1 << 16
FOLLOWED_SHARE_MAX: Final = 1 / 4
"""Edges that may differ between two versions, as a number and as a share of them, for arrays of one
to be made from those of the other; for more, all edges are read again."""

PEEKED_EDGES_MAX: Final = 10_000
"""Edges that are read to bring arrays up to date for a query which an index could answer."""

STORED_EDGES_MIN: Final = 1 << 17
"""Edges of a table from which on its topology is written to a file."""

STORED_SHARE_MAX: Final = 1 / 8
"""The share of edges that may differ from a stored topology before it is written again."""

TRIED_ARRAY_FILES_MAX: Final = 2
"""Files of stored arrays that are read before what they were made of."""

ARRAY_FILE_SHARE: Final = 1 / 16
"""What reading an edge of a stored topology costs, as a share of what reading the edge does."""

NUMBERED_AT_ONCE_ROWS_MAX: Final = 1 << 16
"""Edges whose ends are held as texts while they become numbers; more are streamed."""

MATCHED_BLOCK_STEPS: Final = 1 << 17
"""Steps along edges that a match on arrays takes at a time: what it holds for them fits a cache."""

MATCHED_ROWS_MAX: Final = 1 << 26
"""Rows that a match on arrays collects; for more the same is asked of SQL, which can spill."""

WALKED_BLOCK_BYTES: Final = 4 << 20
"""Memory for which nodes a block of walks has reached: a byte for each start and node."""

KEYED_QUERIES_MAX: Final = 16
"""Queries from a key or an indexed property that indexes answer before arrays are made for them."""

FETCHED_WHOLE_BYTES_MAX: Final = 64 << 10
"""Data files of a fragment of which every column is read if one is: it takes the same requests.

On S3, this is `READ_BLOCK_BYTES`."""

JOINED_CHUNK_ROWS_MAX: Final = 1 << 16
JOINED_CHUNK_BYTES_MAX: Final = 16 << 20
"""Values of small fragments that are joined in memory to one array."""

ASSEMBLED_REFS_MAX: Final = 16
"""Branches, and runs of small fragments, for which a graph handle keeps an assembled column."""

LAYOUTS_MAX: Final = 64
"""Tables and branches for which a graph handle keeps the list of fragments it read last, and the
numbers of nodes."""

SCANNED_RUNS_MAX: Final = 16
"""Runs of small and of large fragments that are read separately; for more, all are scanned."""

CATALOGS_MAX: Final = 8
"""Catalogs that a graph handle keeps, one for each schema its commits name."""

COMPILED_QUERIES_MAX: Final = 256
"""Compiled queries that a graph handle keeps."""

SPARK_PARTITION_ROWS_MIN: Final = 1 << 16
SPARK_PARTITION_ROWS_MAX: Final = 1 << 20
"""Rows of one partition of a table on Spark: below, starting its task costs more than its work."""

SPARK_PIECE_ROWS_MIN: Final = 1 << 10
SPARK_BUCKET_ROWS_MAX: Final = 1 << 23
"""About how many rows a piece between two tasks has at least. There are as many pieces as senders
times receivers, so tasks of huge shuffles get more rows, up to the maximum."""

SPARK_PARTITIONS_PER_CORE_MIN: Final = 2
"""Partitions per core that a table with enough rows is cut into: the last ones even out."""

CONNECTOR_PARALLELISM: Final = 16
"""Cores that the Spark connector cuts a table for; the cluster is unknown when it plans."""

SPARK_OPEN_ROWS: Final = 1 << 13
"""About how many rows a Spark task reads in the time in which it opens a table or a file."""

HELD_ROWS_MIN: Final = 1 << 16
HELD_ROWS_MAX: Final = 1 << 22
HELD_BYTES_MAX: Final = 128 << 20
"""Keys that every worker may hold in memory, rather than shuffle what they are compared with; up to
the minimum it holds them in any case."""

SPARK_BATCH_BYTES_MAX: Final = 8 << 20
"""About how much of a table a Spark task holds at a time, and the size of batches sent to Spark."""

SPARK_SHUFFLE_PARTITIONS_PER_CORE: Final = 4
"""Adaptive execution joins small ones."""

SPARK_DRIVER_BYTES_MIN: Final = 1 << 30
SPARK_DRIVER_BYTES_MAX: Final = 8 << 30
"""Memory of a local Spark: a quarter of the machine's, within these bounds."""

CACHED_VERSIONS_MAX: Final = 8
"""Releases, of the package and of Python, for which the user's cache keeps a thing at once."""

SPARK_ARCHIVES_MAX: Final = 3
"""Start-up archives kept in the user's cache; each has about 150 MB."""

SORTED_IN_MEMORY_BYTES_MAX: Final = 128 << 20
"""Data files of a table whose rows are sorted in memory; larger tables may spill to disk."""

SORTING_BYTES_MAX: Final = 1 << 30
"""Memory that sorting a larger table takes before it spills to disk."""

SORT_BATCH_ROWS_MAX: Final = 1 << 14
SORT_BATCH_BYTES: Final = 8 << 20
"""A batch of sorted rows: the maximum count, and the approximate size if rows are wide."""

SAMPLES_PER_PART: Final = 64
"""Ids sampled for each part of a parallel export, to cut parts of similar size."""

METADATA_CACHE_BYTES_MAX: Final = 128 << 20
INDEX_CACHE_BYTES_MAX: Final = 1 << 30
"""Versions and files that Lance remembers for a graph handle, and pages of indexes."""

PINNED_TABLES_MAX: Final = 256
"""Open tables that a graph handle keeps for the next reader of the same versions."""

KNOWN_FORKS_MAX: Final = 4096
"""Refs of tables of which a graph handle remembers where they started."""

PROBED_VERSIONS_MAX: Final = 16
"""Versions above the newest known one that are looked for one by one before all are listed."""

READ_BLOCK_BYTES: Final = 1 << 20
"""Smaller files, and the ends of larger ones, are fetched in one request.

So are internal tables everywhere, and on S3 tables of types: there, so much takes less time to send
than a request to be answered."""

LOOKED_UP_WHOLE_BYTES_MAX: Final = 8 << 20
"""Data files on S3 that a lookup fetches whole, in one request: an index takes more than ten, most
of them one after the other, and the next lookup takes none."""

REMOTE_OPENS_MAX: Final = 8
"""Tables on S3 that are opened at once."""

HOPS_MAX: Final = 64
"""The longest path a query may traverse; no practical graph has a larger diameter."""

PATH_SOURCES_MAX: Final = 10_000
"""Nodes from which paths are walked on arrays, one after the other."""

TAKEN_IDS_MAX: Final = 5_000
"""Ids that are sorted by themselves, or read by the positions of their rows; for more, the whole
column is."""

BRANCH_NAME_LENGTH_MAX: Final = 200
"""Branch names become directory names; file systems allow 255 bytes for one."""

TYPE_NAME_LENGTH_MAX: Final = 128
MESSAGE_LENGTH_MAX: Final = 64 << 10
ACTOR_LENGTH_MAX: Final = 256
PROPOSAL_TITLE_LENGTH_MAX: Final = 200
PROPOSAL_TEXT_LENGTH_MAX: Final = 10_000
"""Characters of the description of a proposal, and of a comment on it."""

PROPOSAL_COMMENTS_MAX: Final = 1000
"""Comments on one proposal: every change of it writes them all."""

STREAM_NAME_LENGTH_MAX: Final = 512

STREAMS_MAX: Final = 1000
"""Streams that a branch has records of: every publish writes them all."""

STREAM_ATTEMPTS_MAX: Final = 5
"""Times that a batch of a stream is loaded again because other writers changed its tables."""

STREAM_BACKOFF_SECONDS_MAX: Final = 2.0

SETTINGS_AGE_SECONDS_MAX: Final = 10.0
"""How long a graph handle uses settings before it reads them again."""

SETTINGS_ATTEMPTS_MAX: Final = 10
"""Times a change of settings is tried while others change settings."""

SETTINGS_BACKOFF_SECONDS_MAX: Final = 0.5

KEEP_COMMITS_MAX: Final = 1_000_000_000
KEEP_DAYS_MAX: Final = 36_500
"""The highest values of settings for retention: as good as for ever."""

OFFENDERS_SHOWN_MAX: Final = 20
"""Offenders that a report keeps per rule, type and property; the others are counted."""

ROWS_PER_BATCH_MAX: Final = 1 << 13
"""Rows that are held as Python values while they become a batch of columns."""

LEASE_SECONDS: Final = 30.0
"""How long a writer may take from its first effect to its end before it is recovered."""

EXCLUSION_SECONDS_MAX: Final = 45.0
"""How long a writer waits for other claims on its tables: longer than one lease."""

EXCLUSION_BACKOFF_SECONDS_MAX: Final = 0.5

QUEUE_SECONDS_MAX: Final = 10.0
"""How long a writer queues behind others on its machine before its sidecar races theirs."""

GRACE_SECONDS: Final = 3_600.0
"""How long a commit stays readable after it stopped being the newest of its branch."""

GRACE_SECONDS_MIN: Final = 4 * LEASE_SECONDS
"""The shortest grace that a caller may ask for. A publish that takes longer than a lease makes sure
that it landed, because a version number that cleanup has freed can be taken again."""

LET_GO_ATTEMPTS_MAX: Final = 20
"""Times that a change of the record of let-go commits is tried while others change it."""

DURATION_DAYS_MAX: Final = 100_000

STAGED_SECONDS_MAX: Final = 36 * 3_600.0
"""How long a write may take from its start until it claims its tables. `cleanup` takes files that
nothing names for garbage once they are twice as old."""

REQUEST_KEPT_SECONDS: Final = 24 * 3_600.0
"""How long the key of a request stands for its result. Records are deleted once they are twice as
old."""

REQUEST_ATTEMPTS_MAX: Final = 5
"""Times that a request with a key is tried while other processes carry out the same one."""

REQUEST_KEY_LENGTH_MAX: Final = 255

REPLANS_MAX: Final = 20
"""Times a write that only inserts is planned again because its tables moved."""

RESOLVE_ATTEMPTS_MAX: Final = 5
"""Times a recovery starts over because the branch moved while it decided."""

AUDIT_ATTEMPTS_MAX: Final = 10
"""Times a recovery tries to record itself while others record themselves."""

AUDIT_FRAGMENTS_MAX: Final = 64
"""Recoveries that are recorded before their rows are folded into one fragment."""

LOAD_LOCAL_BYTES_MAX: Final = 256 << 20
LOAD_LOCAL_ROWS_MAX: Final = 2_000_000
"""Input that a load processes, and holds, in this process; above, `auto` chooses Spark."""

LOAD_COMPRESSED_FACTOR: Final = 5
"""The assumed expansion of a compressed file, or of a Parquet file, in memory."""

LOAD_INPUTS_MAX: Final = 100_000
"""Files of one load."""

LOAD_SPARK_FILE_BYTES_MAX: Final = 512 << 20
"""The size of a file that Spark reads for a task, which then has it in memory as a whole."""

LOAD_BLOCK_BYTES: Final = 16 << 20
"""How much text of an input is converted at a time; at least one line."""

REMOTE_BLOCK_BYTES: Final = 8 << 20
"""How much of an object that is read in order is requested at a time, at least."""

REMOTE_PART_BYTES: Final = 256 << 10
"""How much of an object of which parts are read is requested at a time, at least."""

LOAD_LINE_BYTES_MAX: Final = 512 << 20
"""The longest line; an input with a longer one is not a file of lines."""

LOAD_BATCH_ROWS: Final = 1 << 17
"""Rows of columnar input that are converted at a time."""

LOAD_GROUPS_MAX: Final = 64
"""Kinds of lines distinguished in one block of text; the rest is read line by line."""

LOAD_BISECTED_ROWS_MIN: Final = 32
"""A batch with a doubtful row is halved down to this, and then converted value by value."""

LOAD_DOUBTS_MAX: Final = 1000
"""Times that a batch is halved before the rest of it is converted value by value."""

QUARANTINE_ROUNDS_MAX: Final = 100
"""Rounds of rejecting rows because earlier ones were rejected, before a load gives up."""

LOAD_GROUP_BYTES_MIN: Final = 16 << 20
LOAD_GROUP_BYTES_MAX: Final = 256 << 20
"""Input that one Spark task reads: below, starting it costs more than its work."""

LOAD_GROUPS_PER_CORE_MIN: Final = 2
"""Tasks per core that a large enough input is cut into: the last ones even out."""

LOAD_SPLITS_PER_GROUP: Final = 4
"""About how many parts of files a Spark task reads: tasks of whole parts are that even."""

LOAD_PLANNING_THREADS: Final = 16
"""Files whose footers are read at once to plan a load on Spark."""

LOAD_HELD_BYTES_MAX: Final = 256 << 20
"""Rows of all types that one Spark task holds before it writes those of the largest to a file."""

INDEX_LOCAL_ROWS_MAX: Final = 16_000_000
"""Rows, counted once per index that lacks them, that this process indexes; above, `auto` chooses
Spark."""

UNINDEXED_ROWS_NOTED_MIN: Final = 100_000
"""Rows that an index lacks from which on a check notes it."""

INDEX_SEGMENTS_MAX: Final = 8
"""Segments of one index, not counting the largest possible ones; beyond, the index writer joins
some: each lookup reads every segment."""

INDEX_PART_ROWS_MAX: Final = 1 << 22
"""Rows that one Spark task indexes. With more rows, a few segments of an index stay as they are: to
join them takes as long as to build them."""

INDEX_SEGMENT_ROWS_MAX: Final = 1 << 26
"""Rows of a joined segment: one task joins it, and each lookup reads every segment."""

SEARCH_JOIN_WEIGHT: Final = 16
"""How many rows of other indexes are joined in the time in which one row is indexed for search."""

VECTOR_INDEX_ROWS_MIN: Final = 10_000
"""Rows of a table below which its vectors get no index, unless the schema says which: a scan of
them is exact, and about as fast."""

VECTOR_FLAT_ROWS_MAX: Final = 1 << 20
"""Rows of a table above which an index of vectors has codes in their place, unless the schema says
which: codes take a thirtieth of the space, and half a minute to learn."""

VECTOR_SEGMENT_ROWS_MIN: Final = 256
"""Vectors of a segment of an index: with fewer, Lance learns no codes. Rows that make no segment
are scanned."""

VECTOR_PARTITION_ROWS: Final = 4_096
"""Vectors of a partition of an index."""

VECTOR_SUBVECTOR_MAX: Final = 8
"""Numbers of a vector that one code stands for."""

SMALL_FRAGMENT_SHARE: Final = 0.5
"""Share of a full file below which an optimize joins a fragment with others. Two fragments above it
do not fit into one file, so what is optimized stays as it is."""

DELETED_SHARE_MAX: Final = 0.1
"""Share of deleted rows above which a fragment is rewritten without them."""

SMALL_FRAGMENTS_MAX: Final = 32
"""Small fragments of a table that `optimize --if-needed` leaves as they are."""

FOLD_FRAGMENTS_MIN: Final = 32
"""Fragments of similar size from which on a writer folds them into one, after its commit."""

FOLD_TIER_FACTOR: Final = 8
FOLD_JOINED_BYTES_MAX: Final = 1 << 20
"""Fragments of the next size that a fold takes along if there are so many with its result, and the
size of all: a row is rewritten once for each power of the factor, and more seldom if it is large.
"""

FOLD_SIZE_MAX: Final = 1 << 16
FOLD_BYTES_PER_ROW: Final = 1 << 9
"""Rows of a fragment that is not folded any more; wide rows count once for each so many bytes."""

FOLD_FRAGMENTS_MAX: Final = 256
FOLD_TOTAL_MAX: Final = 1 << 17
FOLD_BYTES_MAX: Final = 16 << 20
"""Fragments that one fold rewrites, their rows, counted likewise, and the size of their files:
about a fifth of a second, and 8 KB for each of the updates after which a table is folded whole."""

FOLD_JOINED_ROWS_MAX: Final = 1 << 19
"""Rows of index segments that one fold joins: about a tenth of a second."""

ROW_ID_BYTES_MAX: Final = 1 << 13
"""Bytes of row ids of a small table, those of its largest fragment aside, from which on a fold
takes all of its rows, and an optimize sorts what it takes: each commit writes them again, and in
order they are a few ranges."""

FOLD_ROW_ID_BYTES_MAX: Final = 1 << 10
"""Bytes of row ids from which on a fold sorts what it takes: rows that were just written, or all
rows of a table of which many were."""

FOLD_DELETED_ROWS_MIN: Final = 1 << 10
"""Deleted rows of a fragment that make a fold of it alone worth a commit."""

OPTIMIZE_LOCAL_ROWS_MAX: Final = 16_000_000
OPTIMIZE_LOCAL_BYTES_MAX: Final = 4 << 30
"""Rows, and their size in files, that an optimize rewrites in this process."""

OPTIMIZE_THREADS_MAX: Final = 4
"""Files that an optimize writes at once in this process."""

ROW_VERSION_RUNS_MIN: Final = 4
ROW_VERSION_RUNS_MAX: Final = 64
ROW_VERSION_RUN_ROWS_MIN: Final = 1 << 10
"""Runs of row versions that a rewritten fragment keeps, one for so many rows, within the bounds."""

CHANGES_LOCAL_ROWS_MAX: Final = 1_000_000
CHANGES_LOCAL_BYTES_MAX: Final = 256 << 20
"""Rows that differ, and their size in files, that a merge or a diff holds in this process."""

CARRIED_RUNS_MAX: Final = 1 << 20
"""Runs of row ids of a table that are held while the rows that a compaction moved are found."""

CHANGED_BUCKET_ROWS_MAX: Final = 1 << 18
CHANGED_BUCKET_BYTES_MAX: Final = 32 << 20
"""Rows that one Spark task compares, and their size in files: it holds all of them."""

CHANGED_BATCH_BYTES: Final = 32 << 20
"""About how much of a difference a Spark task reads before it passes it on."""

CHANGED_SAMPLES_PER_TASK: Final = 256
"""Ids that a Spark task samples, so that a difference is cut into ordered parts of similar size."""

MERGE_BASE_DEPTH_MAX: Final = 32
"""Levels of criss-cross merges in two histories beyond which their merge base counts as unknown."""

MERGE_CONFLICTS_MAX: Final = 5_000
"""Conflicts that a merge on Spark lists; all are counted."""

MERGE_DECISIONS_MAX: Final = 100_000
"""Rows that decisions about rules may change in a merge on Spark: the driver holds them."""

FILL_LENGTH_MAX: Final = 4_000
"""Characters of an expression that fills a property."""

FILL_SQL_LENGTH_MAX: Final = 64_000
"""Characters of the SQL of such an expression: casts and divisions repeat their operands."""

EMBEDDED_ROWS_PER_COMMIT: Final = 10_000
"""Rows that `embed` embeds before it commits them: what a kill can cost at most."""

EMBEDDED_PART_ROWS: Final = 1 << 15
"""Rows of a fragment that are embedded as one piece of work."""

EMBEDDED_PARTS_PER_COMMIT: Final = 4
EMBEDDED_PARTS_PER_CORE: Final = 2
"""The pieces that a job on Spark embeds before it commits them: so many, or so many for each core
if these are more."""

EMBEDDED_HELD_BYTES_MAX: Final = 64 << 20
"""Vectors that a run of `embed`, and each of its tasks on Spark, keeps in memory for further rows
with the same texts."""

EMBEDDED_ROWS_HELD_MAX: Final = 1 << 14
"""Rows that a load on Spark gives vectors at once: scratch has files of many more without them."""

EMBED_LOCAL_ROWS_MAX: Final = 500_000
"""Rows that `embed` embeds in this process; above, `auto` chooses Spark."""

ALGORITHM_LOCAL_EDGES_MAX: Final = 25_000_000
"""Edges that an algorithm follows in this process; above, `auto` chooses Spark."""

ALGORITHM_ROUNDS_MAX: Final = 10_000
"""Rounds that a caller may ask for."""

BACKFILL_LOCAL_ROWS_MAX: Final = 8_000_000
"""Values of columns, counted once per row and column, that a schema change writes in this process;
above, `auto` chooses Spark."""

BACKFILL_THREADS_MAX: Final = 4
"""Fragments whose columns are filled at once in this process; each holds a few batches."""

VALUES_WRITTEN_PER_SECOND: Final = 1_000_000
ROWS_CHECKED_PER_SECOND: Final = 5_000_000
"""About what one process with two cores and its own disk does, for estimates of schema changes."""

ANALYSED_BLOCK_BYTES: Final = 8 << 20
"""Bytes of texts that are split into words at once; what that takes is some ten times as much."""

KEPT_TOKENS_BYTES_MAX: Final = 256 << 20
"""Bytes of tokens of texts that an engine keeps in memory."""

KEPT_TEXT_LENGTHS_BYTES_MAX: Final = 256 << 20
"""Bytes that an engine keeps in memory of the numbers of words of texts, four for each row."""

STORED_TEXTS_MIN: Final = 50_000
"""Rows of a type from which on index runs store how many words each text has."""

MEASURED_TEXTS_MAX: Final = 1 << 20
"""Texts whose words are counted for a mean length; that of more texts is estimated from these."""

OUTDATED_TEXTS_SHARE_MAX: Final = 1 / 64
"""Share of the texts of a file that were deleted since they were counted, for counts to be used."""

KEPT_WORD_COUNTS_MAX: Final = 1 << 14
"""Words of which an engine remembers how many texts of a version have them."""

INDEXED_TEXT_ROWS_MIN: Final = 1 << 12
"""Rows of a fragment from which on an index finds its texts; those of smaller ones are analysed."""

TEXT_CANDIDATES_SPARE: Final = 8
"""Rows that an index of texts is asked for beyond those that are wanted."""

TEXT_CANDIDATES_GROWTH: Final = 4
"""How many times as many are asked for next, if the last of them may be among the best."""

TEXT_CANDIDATES_MAX: Final = 4_096
"""Rows that are scored again at most, unless more are wanted."""

TAKEN_SHARE_MAX: Final = 1 / 16
"""The share of the rows of a table from which on all texts are scanned, and not some looked up."""

VECTOR_PROBES_MIN: Final = 4
"""Partitions of an index of vectors that are looked into first."""

VECTOR_SPARE_ROWS: Final = 32
"""Rows that an index with vectors is asked for beyond those that are wanted."""

VECTOR_PROBES_GROWTH: Final = 4
"""How many times as many are looked into next, to see whether that changes the answer."""

VECTOR_PROBES_MAX: Final = 100_000
"""The largest number of partitions that a graph's settings may name."""

VECTOR_REFINE_MAX: Final = 1_000
"""The largest number of vectors per row that a graph's settings may name."""

VECTOR_REFINE_FACTOR: Final = 50
"""Vectors that are read for each row wanted, where an index has codes in their place."""

CUT_TABLE_ROWS_MIN: Final = 10_000
"""Rows of a type from which on the best of a scope are found without a ranking of all rows."""

CUT_CANDIDATES_PER_ROW: Final = 16
"""The best rows of a type that are tried for each row wanted of a scope."""

CUT_GROWTH_MIN: Final = 2
"""How many times as many are tried next, at least."""

CUT_CANDIDATES_MAX: Final = 1_024
"""The best rows of a type that are tried at most: to be sure of more, an index reads most of it."""

FUSED_CANDIDATES_PER_ROW: Final = 32
"""Likewise for each row of a ranking that a fusion counts."""

SCOPED_SHARE_MAX: Final = 1 / 32
"""The share of a type's rows that a scope has at most if only the vectors of these are read."""

LOOKED_UP_VECTORS_MAX: Final = 1_000
"""Rows whose vectors are looked up by their ids; for more, all ids are compared with them."""

SEARCH_TEXT_BYTES_MAX: Final = 64 << 10
"""Bytes of a text that is looked for."""

RRF_WINDOW_MIN: Final = 100
"""How many rows of a ranking a fusion counts, unless more are wanted: of two rankings and with the
usual k, no row after the 70th place of both is among the best ten."""

REMEMBERED_WORDS_MAX: Final = 1 << 17
"""Words whose tokens a process remembers, for each analysis."""

AGENT_ROWS_MAX: Final = 1_000
"""Rows that one call of an agent's tool may return: it reads all of them."""

AGENT_CHANGES_MAX: Final = 100
"""Changed rows that a diff shows to an agent; the counts are of all."""

SENT_ROWS_MAX: Final = 1000
SENT_SIZE_MAX: Final = 1 << 20
"""Changed rows of a type, and their bytes, that a server sends with a diff; more when read."""

REMOTE_CONNECT_SECONDS: Final = 10.0
"""How long a client waits for a server to accept its connection."""

REMOTE_BACKOFF_SECONDS: Final = 0.1
REMOTE_BACKOFF_SECONDS_MAX: Final = 5.0
"""How long a client waits before it repeats a request: the first time, and at most."""

REMOTE_POLL_SECONDS: Final = 0.2
REMOTE_POLL_SECONDS_MAX: Final = 2.0
"""How often a client looks how far its load is: at first, and later."""

REMOTE_PIECE_BYTES: Final = 1 << 18
"""Bytes of a body that a client sends at a time."""

REMOTE_REPEATS_MAX: Final = 5
"""How often a client sends a load again that the server's end interrupted."""

COMMAND_RETRY_SECONDS: Final = 15.0
"""How long a command repeats a request to a server: a person waits for its answer."""
