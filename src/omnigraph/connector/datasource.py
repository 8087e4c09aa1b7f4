"""The Spark connector: `format("omnigraph")` of reads and writes, also of streams.

Spark imports this module in a process of its own whenever a session names a format, so it imports
no more than it must; `options`, `readers` and `writer`, and the room of streams, do the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from omnigraph.connector.failures import hide_frames

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.types import StructType

    from omnigraph.connector.options import Pinned
    from omnigraph.errors import OmnigraphError


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
        columns: The columns to read, with commas between them; all without it.
        where: A filter in Spark's SQL that Lance applies, with its indexes where it has them:
            comparisons with constants, IN, BETWEEN and IS NULL, joined by AND.
        pushdown: `true` lets Lance apply filters, with its indexes where it has them. The session
            must allow it, `spark.sql.python.filterPushdown.enabled`, and the frame may be used
            once: Spark applies what one use of a frame pushes down to all its uses.
        mode: How to write: `append`, `merge` or `overwrite`, as in `Graph.load`. Without it,
            Spark's own mode decides between the first and the last.
        actor, message: Who reads or writes, and why.
        policy: The file of the policy that says what they may do, where the driver runs;
            `$OMNIGRAPH_POLICY` of Spark's driver without it.

    A stream of changes (`spark.readStream`) has the options of `streams.options.FeedOptions`, and a
    stream that is written (`df.writeStream`) those of `streams.options.parse_sink`.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        from omnigraph.streams.options import is_of_stream

        self.options = options
        # Now, so that a frame stays at its commit.
        self._pinned = None if is_of_stream(options) else _attempt_pin(options)

    def _require_pinned(self) -> Pinned | None:
        """What is read; None for changes, which only a stream reads."""
        from omnigraph.errors import OmnigraphError

        if isinstance(self._pinned, OmnigraphError):
            raise self._pinned
        return self._pinned

    @classmethod
    def name(cls) -> str:
        """The name of the source in `format`."""
        return "omnigraph"

    @hide_frames()
    def schema(self) -> StructType:
        """The type's columns, the query's, or those of changes."""
        from omnigraph.connector.readers import declared_schema

        if (pinned := self._require_pinned()) is not None:
            return declared_schema(pinned)
        from omnigraph.streams.options import FeedOptions, require_stream_sources

        require_stream_sources()
        from omnigraph.streams.source import feed_schema

        return feed_schema(FeedOptions.parse(self.options))

    @hide_frames()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of the schema, which may be fewer than declared."""
        from omnigraph.connector.readers import open_reader
        from omnigraph.streams.options import only_of_streams_error

        if (pinned := self._require_pinned()) is None:
            raise only_of_streams_error()
        return open_reader(pinned, schema)

    @hide_frames()
    def writer(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceWriter:
        """A writer that runs a load, with all its checks."""
        from omnigraph.connector.writer import open_writer

        return open_writer(self.options, schema, overwrites=overwrite)

    @hide_frames()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002
        """A reader of the changes of a branch, commit by commit."""
        from omnigraph.streams.options import FeedOptions, require_stream_sources

        require_stream_sources()
        from omnigraph.streams.source import FeedReader

        return FeedReader(FeedOptions.parse(self.options))

    @hide_frames()
    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001  # a stream of Spark's mode complete
    ) -> DataSourceStreamWriter:
        """A writer that loads each micro-batch in one commit, exactly once."""
        from omnigraph.streams.options import require_stream_sources

        require_stream_sources()
        from omnigraph.streams.sink import open_sink

        return open_sink(self.options, schema, overwrites=overwrite)


def _attempt_pin(options: MutableMapping[str, str]) -> Pinned | OmnigraphError:
    """What options pin, or why they pin nothing.

    Spark does not say yet whether it will read or write, and a write that the policy refuses must
    not learn what exists.
    """
    from omnigraph.connector.options import pin
    from omnigraph.errors import OmnigraphError

    try:
        return pin(dict(options))
    except OmnigraphError as refusal:
        return refusal
