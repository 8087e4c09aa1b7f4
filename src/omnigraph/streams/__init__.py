"""Streams: micro-batches of Spark written exactly once, and the change feed as a stream."""
