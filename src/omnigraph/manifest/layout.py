"""The layout of a graph below its root: paths of internal objects, and the manifest's columns."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

MANIFEST: Final = "__manifest"
SCHEMAS: Final = "__schemas"
RECOVERY: Final = "__recovery"
BRANCHES: Final = "__branches"
RETIRED: Final = "__retired"
TAGS: Final = "__tags"
SETTINGS: Final = "__settings.json"
RETENTION: Final = "__retention"
REQUESTS: Final = "__requests"
PROPOSALS: Final = "__proposals"
COPY: Final = "__copy.json"
SCHEMA_TEXT: Final = "_schema.pg"
RECOVERIES: Final = "_graph_commit_recoveries.lance"

IMPORT: Final = "__import.json"
"""What an import brings, and from where (`originals.records`)."""

STAMP: Final = "omnigraph:internal_schema_version"
"""The key in the manifest's schema metadata that holds the format stamp."""

IMPORTING: Final = "omnigraph:importing"
"""The key in the schema metadata of manifest versions that an import wrote.

They can be read once the newest version of main does not have it.
"""

UNIQUE_ID: Final = {"lance-schema:unenforced-primary-key": "true"}


def manifest_schema(stamp: int, *, importing: bool = False) -> pa.Schema:
    """The manifest's columns, stamped; Lance carries schema metadata in the same atomic commit."""
    marks = {IMPORTING: "true"} if importing else {}
    columns = [
        pa.field("object_id", pa.string(), nullable=False, metadata=UNIQUE_ID),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("table_key", pa.string()),
        pa.field("location", pa.string()),
        pa.field("table_version", pa.int64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.int64()),
        pa.field("metadata", pa.string()),
    ]
    return pa.schema(columns, metadata={STAMP: str(stamp), **marks})
