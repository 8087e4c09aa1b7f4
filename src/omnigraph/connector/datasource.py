"""The Spark connector: `spark.read.format("omnigraph")` and `df.write.format("omnigraph")`.

Spark imports this module in a process of its own whenever a session names a format, so it imports
no more than it must; `options`, `readers` and `writer` do the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.types import StructType


class OmnigraphSource(DataSource):
    """A type, or the result of a query, at one commit.

    Options:
        graph: The graph's URI.
        path: The name of a type; the argument of `load` and `save`.
        branch, commit, version: Which commit, as in `Graph.at`. A branch means its head at the time
            of `load`: a frame never changes.
        query, params, name: A `.gq` text instead of a type, its parameters as JSON, and which
            of its queries. It runs in one task.
        parallelism: How many tasks to aim at, for a large type.
        pushdown: `true` lets Lance apply filters, with its indexes where it has them. The session
            must allow it, `spark.sql.python.filterPushdown.enabled`, and the frame may be used
            once: Spark applies what one use of a frame pushes down to all its uses.
        mode: How to write: `append`, `merge` or `overwrite`, as in `Graph.load`. Without it,
            Spark's own mode decides between the first and the last.
        actor, message: Who writes, and why.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        from omnigraph.connector.options import pin

        self.options = options
        self.pinned = pin(dict(options))

    @classmethod
    def name(cls) -> str:
        """The name of the source in `format`."""
        return "omnigraph"

    def schema(self) -> StructType:
        """The type's columns, or the query's."""
        from omnigraph.connector.readers import declared_schema

        return declared_schema(self.pinned)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of the schema, which may be fewer than declared."""
        from omnigraph.connector.readers import open_reader

        return open_reader(self.pinned, schema)

    def writer(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceWriter:
        """A writer that runs a load, with all its checks."""
        from omnigraph.connector.writer import open_writer

        return open_writer(self.options, schema, overwrites=overwrite)
