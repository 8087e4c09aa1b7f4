"""Limits that several modules share; a limit of one module is defined there."""

from __future__ import annotations

from typing import Final

PUBLISH_ATTEMPTS_MAX: Final = 5
"""Attempts of a publish that may lose their race before it reports contention."""

CLEANUP_THREADS: Final = 8
"""Versions of the manifest that a cleanup reads at once."""

ROWS_PER_FILE_MAX: Final = 1 << 20
BYTES_PER_FILE_MAX: Final = 512 << 20
"""A data file closes at whichever of the two it reaches first."""

KEYS_PER_LOOKUP_MAX: Final = 10_000
"""Ids looked up in a table by filter; above it, reading the id column once is cheaper."""

WIDE_BATCH_BYTES: Final = 8 << 20
"""About how many bytes of vectors and blobs are held while their rows are compared or written."""

KEPT_FRAGMENT_ROWS_MAX: Final = 1 << 12
"""Rows of an unindexed fragment whose ids are kept in memory for lookups."""

KEPT_LOOKUP_ROWS_MAX: Final = 1 << 17
"""Rows that one lookup finds in memory; fragments beyond are scanned."""

OPENED_FRAGMENTS_MAX: Final = 64
"""Indexed fragments that a lookup names one by one; beyond, it queries the index for all."""

LOCAL_BYTES_MAX: Final = 4 << 30
"""Bytes of table data that the local engine processes before `auto` chooses Spark."""

QUERY_BYTES_MIN: Final = 16_000_000
"""The least memory that a query can be limited to: DuckDB allocates about this much for each."""

MANIFEST_STATES_MAX: Final = 8
"""Manifest states that a graph handle keeps; each is as large as the schema has types."""

KEPT_TABLE_BYTES_MAX: Final = 256 << 20
"""Data files of a table whose columns the local engine reads into memory to join them."""

STORED_EDGES_MIN: Final = 1 << 17
"""Edges of a table from which on its topology is written to a file."""

TRIED_ARRAY_FILES_MAX: Final = 2
"""Files of stored arrays that are read before what they were made of."""

MATCHED_BLOCK_STEPS: Final = 1 << 17
"""Steps along edges that a match on arrays takes at a time: what it holds for them fits a cache."""

MATCHED_ROWS_MAX: Final = 1 << 26
"""Rows that a match on arrays collects; for more the same is asked of SQL, which can spill."""

LAYOUTS_MAX: Final = 64
"""Tables and branches for which a graph handle keeps the list of fragments it read last, and the
numbers of nodes."""

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

CONNECTOR_PARALLELISM: Final = 16
"""Cores that the Spark connector cuts a table for; the cluster is unknown when it plans."""

SPARK_OPEN_ROWS: Final = 1 << 13
"""About how many rows a Spark task reads in the time in which it opens a table or a file."""

SPARK_BATCH_BYTES_MAX: Final = 8 << 20
"""About how much of a table a Spark task holds at a time, and the size of batches sent to Spark."""

SPARK_SHUFFLE_PARTITIONS_PER_CORE: Final = 4
"""Adaptive execution joins small ones."""

SORTED_IN_MEMORY_BYTES_MAX: Final = 128 << 20
"""Data files of a table whose rows are sorted in memory; larger tables may spill to disk."""

PINNED_TABLES_MAX: Final = 256
"""Open tables that a graph handle keeps for the next reader of the same versions."""

HOPS_MAX: Final = 64
"""The longest path a query may traverse; no practical graph has a larger diameter."""

TYPE_NAME_LENGTH_MAX: Final = 128
MESSAGE_LENGTH_MAX: Final = 64 << 10
ACTOR_LENGTH_MAX: Final = 256
PROPOSAL_TITLE_LENGTH_MAX: Final = 200
PROPOSAL_TEXT_LENGTH_MAX: Final = 10_000
"""Characters of the description of a proposal, and of a comment on it."""

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

GRACE_SECONDS_MIN: Final = 4 * LEASE_SECONDS
"""The shortest grace that a caller may ask for. A publish that takes longer than a lease makes sure
that it landed, because a version number that cleanup has freed can be taken again."""

STAGED_SECONDS_MAX: Final = 36 * 3_600.0
"""How long a write may take from its start until it claims its tables. `cleanup` takes files that
nothing names for garbage once they are twice as old."""

LOAD_LOCAL_BYTES_MAX: Final = 256 << 20
LOAD_LOCAL_ROWS_MAX: Final = 2_000_000
"""Input that a load processes, and holds, in this process; above, `auto` chooses Spark."""

LOAD_INPUTS_MAX: Final = 100_000
"""Files of one load."""

LOAD_BLOCK_BYTES: Final = 16 << 20
"""How much text of an input is converted at a time; at least one line."""

REMOTE_PART_BYTES: Final = 256 << 10
"""How much of an object of which parts are read is requested at a time, at least."""

LOAD_BATCH_ROWS: Final = 1 << 17
"""Rows of columnar input that are converted at a time."""

LOAD_BISECTED_ROWS_MIN: Final = 32
"""A batch with a doubtful row is halved down to this, and then converted value by value."""

LOAD_DOUBTS_MAX: Final = 1000
"""Times that a batch is halved before the rest of it is converted value by value."""

QUARANTINE_ROUNDS_MAX: Final = 100
"""Rounds of rejecting rows because earlier ones were rejected, before a load gives up."""

LOAD_HELD_BYTES_MAX: Final = 256 << 20
"""Rows of all types that one Spark task holds before it writes those of the largest to a file."""

INDEX_LOCAL_ROWS_MAX: Final = 16_000_000
"""Rows, counted once per index that lacks them, that this process indexes; above, `auto` chooses
Spark."""

INDEX_SEGMENTS_MAX: Final = 8
"""Segments of one index, not counting the largest possible ones; beyond, the index writer joins
some: each lookup reads every segment."""

INDEX_SEGMENT_ROWS_MAX: Final = 1 << 26
"""Rows of a joined segment: one task joins it, and each lookup reads every segment."""

VECTOR_SEGMENT_ROWS_MIN: Final = 256
"""Vectors of a segment of an index: with fewer, Lance learns no codes. Rows that make no segment
are scanned."""

VECTOR_PARTITION_ROWS: Final = 4_096
"""Vectors of a partition of an index."""

FOLD_FRAGMENTS_MIN: Final = 32
"""Fragments of similar size from which on a writer folds them into one, after its commit."""

ROW_ID_BYTES_MAX: Final = 1 << 13
"""Bytes of row ids of a small table, those of its largest fragment aside, from which on a fold
takes all of its rows, and an optimize sorts what it takes: each commit writes them again, and in
order they are a few ranges."""

FOLD_DELETED_ROWS_MIN: Final = 1 << 10
"""Deleted rows of a fragment that make a fold of it alone worth a commit."""

MERGE_DECISIONS_MAX: Final = 100_000
"""Rows that decisions about rules may change in a merge on Spark: the driver holds them."""

EMBEDDED_PART_ROWS: Final = 1 << 15
"""Rows of a fragment that are embedded as one piece of work."""

EMBEDDED_HELD_BYTES_MAX: Final = 64 << 20
"""Vectors that a run of `embed`, and each of its tasks on Spark, keeps in memory for further rows
with the same texts."""

INDEXED_TEXT_ROWS_MIN: Final = 1 << 12
"""Rows of a fragment from which on an index finds its texts; those of smaller ones are analysed."""

VECTOR_PROBES_MAX: Final = 100_000
"""The largest number of partitions that a graph's settings may name."""

VECTOR_REFINE_MAX: Final = 1_000
"""The largest number of vectors per row that a graph's settings may name."""

VECTOR_REFINE_FACTOR: Final = 50
"""Vectors that are read for each row wanted, where an index has codes in their place."""

SEARCH_TEXT_BYTES_MAX: Final = 64 << 10
"""Bytes of a text that is looked for."""

REMOTE_PIECE_BYTES: Final = 1 << 18
"""Bytes of a body that a client sends at a time."""
