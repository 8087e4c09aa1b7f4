"""Every bound in one place: how often we retry, how much we hold, how long names may be."""

from __future__ import annotations

from typing import Final

PUBLISH_ATTEMPTS_MAX: Final = 5
"""Lost races a publish survives before it reports contention."""

PUBLISH_BACKOFF_SECONDS_MAX: Final = 0.5

PUBLISH_TURN_SECONDS_MAX: Final = 2.0
"""How long a publish queues behind others of its machine before it races them."""

UPDATE_TURN_SECONDS_MAX: Final = 10.0
"""How long a conditional update on a local disk waits for another before it gives up."""

RECENT_COMMITS_MAX: Final = 64
"""Commit rows kept in the manifest's first fragment before a publish folds them into a page."""

LINEAGE_PAGE_ROWS_MAX: Final = 4096
"""Commit rows in one page of lineage; a full page is never rewritten again."""

MIGRATION_ATTEMPTS_MAX: Final = 8
"""Times a format migration re-reads and tries again because another process was migrating too."""

ROWS_PER_FILE_MAX: Final = 1 << 20
BYTES_PER_FILE_MAX: Final = 512 << 20
"""A data file closes at whichever of the two it reaches first."""

KEYS_PER_LOOKUP_MAX: Final = 10_000
"""Ids looked up in a table by filter; above it, reading the id column once is cheaper."""

KEYS_PER_INDEX_LOOKUP_MAX: Final = 200_000
"""The same where an index finds them, in a table of many rows for each; a filter has them all."""

ROWS_READ_PER_KEY: Final = 64
"""About how many rows of one column are read in the time in which an index finds one key."""

PICKED_SHARE_MAX: Final = 1 / 32
"""Share of a large fragment's rows that are looked up by address; for more, all are read."""

SIFTED_BYTES: Final = 128 << 20
"""About how much of a table is held while rows are picked from it by many ids.

The ids are hashed anew for each part, so small parts are dear."""

WIDE_BATCH_BYTES: Final = 8 << 20
"""About how many vectors and blobs are held while rows that have them are compared or written."""

KEPT_FRAGMENT_ROWS_MAX: Final = 1 << 12
"""Rows of a fragment that no index covers whose ids are kept in memory to look rows up."""

KEPT_LOOKUP_ROWS_MAX: Final = 1 << 17
"""Rows that one lookup finds through memory; fragments beyond are scanned."""

KEPT_VALUES_BYTES_MAX: Final = 64 << 20
"""Memory that a graph handle spends on looking rows up without an index."""

OPENED_FRAGMENTS_MAX: Final = 64
"""Indexed fragments that a lookup names one by one; beyond, it asks the index for all of them."""

UNINDEXED_KEYS_MAX: Final = 100
"""Ids a query carries to a table without an index; joining it in memory is better for more."""

REDUCED_KEYS_MAX: Final = 10_000
"""Ids a query may carry from one relation to the next before it scans the table instead."""

LOCAL_BYTES_MAX: Final = 4 << 30
"""Bytes of table data that the local engine takes on before `auto` chooses Spark."""

MANIFEST_STATES_MAX: Final = 8
"""Manifest states that a graph handle keeps; each is as large as the schema has types."""

KEPT_TABLE_BYTES_MAX: Final = 256 << 20
"""Data files of a table whose columns the local engine reads into memory to join them."""

KEPT_COLUMNS_BYTES_MAX: Final = 512 << 20
"""Columns that a graph handle keeps in memory for the next query."""

CATALOGS_MAX: Final = 8
"""Catalogs that a graph handle keeps, one for each schema its commits name."""

COMPILED_QUERIES_MAX: Final = 256
"""Compiled queries that a graph handle keeps."""

SPARK_PARTITION_ROWS_MIN: Final = 1 << 16
SPARK_PARTITION_ROWS_MAX: Final = 1 << 20
"""Rows of one partition of a table on Spark: below, starting its task costs more than its work."""

SPARK_PARTITIONS_PER_CORE_MIN: Final = 2
"""Partitions a table is cut into for each core, where it has the rows: the last ones even out."""

CONNECTOR_PARALLELISM: Final = 16
"""Cores that the Spark connector cuts a table for; where it plans, nobody knows the cluster."""

SPARK_BATCH_BYTES_MAX: Final = 8 << 20
"""About how much of a table a Spark task holds at a time, and how large a given batch becomes."""

SPARK_SHUFFLE_PARTITIONS_PER_CORE: Final = 4
"""Adaptive execution joins those that turn out small."""

SPARK_DRIVER_BYTES_MIN: Final = 1 << 30
SPARK_DRIVER_BYTES_MAX: Final = 8 << 30
"""Memory of a local Spark, which is a quarter of the machine's within these bounds."""

SPARK_ARCHIVES_MAX: Final = 3
"""Start-up archives kept in the user's cache; each has about 150 MB."""

SORTED_IN_MEMORY_BYTES_MAX: Final = 128 << 20
"""Data files of a table whose rows are sorted in memory; larger ones may wait on disk."""

SORTING_BYTES_MAX: Final = 1 << 30
"""Memory that sorting a larger table takes before rows wait on disk."""

SORT_BATCH_ROWS_MAX: Final = 1 << 14
SORT_BATCH_BYTES: Final = 8 << 20
"""A batch of sorted rows: at most so many, and about so large where rows are wide."""

SAMPLES_PER_PART: Final = 64
"""Ids that are looked at for each part of a parallel export, to cut parts of like size."""

PINNED_TABLES_MAX: Final = 256
"""Open tables that a graph handle keeps for the next reader of the same versions."""

OWN_TABLE_BLOCK_BYTES: Final = 1 << 20
"""Read size for our own small tables: each of their files is fetched in one request."""

HOPS_MAX: Final = 64
"""The longest walk a query may ask for; nothing that people draw is wider."""

BRANCH_NAME_LENGTH_MAX: Final = 200
"""Branch names become directory names; file systems allow 255 bytes for one."""

TYPE_NAME_LENGTH_MAX: Final = 128
MESSAGE_LENGTH_MAX: Final = 64 << 10
ACTOR_LENGTH_MAX: Final = 256

OFFENDERS_SHOWN_MAX: Final = 20
"""Offenders that a report keeps of each rule, type and property; the others are counted."""

ROWS_PER_BATCH_MAX: Final = 1 << 13
"""Rows that are held as Python values while they become a batch of columns."""

LEASE_SECONDS: Final = 30.0
"""How long a writer may take from its first effect to its end before others recover it."""

EXCLUSION_SECONDS_MAX: Final = 45.0
"""How long a writer waits for others that claim its tables: longer than one lease."""

EXCLUSION_BACKOFF_SECONDS_MAX: Final = 0.5

QUEUE_SECONDS_MAX: Final = 10.0
"""How long a writer queues behind others of its machine before its sidecar races theirs."""

REPLANS_MAX: Final = 20
"""Times a write that only inserts is planned again because its tables moved."""

RESOLVE_ATTEMPTS_MAX: Final = 5
"""Times a recovery looks again because the branch moved while it decided."""

AUDIT_ATTEMPTS_MAX: Final = 10
"""Times a recovery tries to record itself while others do."""

AUDIT_FRAGMENTS_MAX: Final = 64
"""Recoveries that are recorded before their rows are folded into one fragment."""

LOAD_LOCAL_BYTES_MAX: Final = 256 << 20
LOAD_LOCAL_ROWS_MAX: Final = 2_000_000
"""Input that a load takes on in this process, which holds all of it; `auto` gives more to Spark."""

LOAD_COMPRESSED_FACTOR: Final = 5
"""How many bytes one of a compressed file, or of a Parquet file, is taken to become."""

LOAD_INPUTS_MAX: Final = 100_000
"""Files of one load."""

LOAD_BLOCK_BYTES: Final = 16 << 20
"""How much text of an input is shaped at a time; at least one line."""

LOAD_LINE_BYTES_MAX: Final = 512 << 20
"""The longest line; what is longer has no lines."""

LOAD_BATCH_ROWS: Final = 1 << 17
"""Rows of columns that are shaped at a time."""

LOAD_GROUPS_MAX: Final = 64
"""Kinds of lines told apart in one block of text; what is left is read line by line."""

LOAD_BISECTED_ROWS_MIN: Final = 32
"""A batch of which a row is in doubt is halved down to this, and then converted value by value."""

LOAD_DOUBTS_MAX: Final = 1000
"""Times that a batch is halved before all that is left of it is converted value by value."""

QUARANTINE_ROUNDS_MAX: Final = 100
"""Times that offenders are rejected because others were, before a load gives up."""

LOAD_GROUP_BYTES_MIN: Final = 16 << 20
LOAD_GROUP_BYTES_MAX: Final = 256 << 20
"""Input that one task of Spark reads: below, starting it costs more than its work."""

LOAD_GROUPS_PER_CORE_MIN: Final = 2
"""Tasks that an input is cut into for each core, if it is large enough: the last ones even out."""

LOAD_HELD_BYTES_MAX: Final = 256 << 20
"""Rows of all types that one task of Spark holds before it writes the largest of them to a file."""

LOAD_CONCURRENCY_DEFAULT: Final = 4
"""Types that a load on Spark stages at once, unless `OMNIGRAPH_LOAD_CONCURRENCY` says otherwise."""

INDEX_LOCAL_ROWS_MAX: Final = 16_000_000
"""Rows, counted for each index that lacks them, that this process indexes before `auto` chooses
Spark."""

INDEX_SEGMENT_ROWS_MAX: Final = 1 << 26
"""Rows of a segment that is joined from others: one task does it, and each lookup asks them all."""

CHANGES_LOCAL_ROWS_MAX: Final = 1_000_000
CHANGES_LOCAL_BYTES_MAX: Final = 256 << 20
"""Rows that differ, and what they take in files, that a merge or a diff holds in this process."""

CHANGED_BUCKET_ROWS_MAX: Final = 1 << 18
CHANGED_BUCKET_BYTES_MAX: Final = 32 << 20
"""Rows that one task of Spark compares, and what they take in files: it holds all of them."""

CHANGED_BATCH_BYTES: Final = 32 << 20
"""About how much of what differs a task of Spark reads before it passes it on."""

CHANGED_SAMPLES_PER_TASK: Final = 256
"""Ids that a task of Spark looks at, so that what differs is cut into like parts in order."""

MERGE_BASE_DEPTH_MAX: Final = 32
"""Times that the histories of two sides crossed, one below the other, before what they come from
counts as unknown."""

MERGE_CONFLICTS_MAX: Final = 5_000
"""Conflicts that a merge on Spark names; all are counted."""

MERGE_DECISIONS_MAX: Final = 100_000
"""Rows that decisions about rules may touch in a merge on Spark: the driver holds them."""
