"""Starting Spark for one command: quickly, and only where it will be used."""

from __future__ import annotations


def start_spark(master: str | None = None) -> None:
    """Start Spark as suits work of seconds to minutes, unless it runs already.

    Whatever needs Spark later finds it running.

    Raises:
        InvalidInputError: Spark is not installed, no Java can run it, or it did not start.
    """
    from omnigraph.engine.extras import require_spark

    require_spark()
    from omnigraph.engine.spark.session import SessionSettings, Work, open_session

    open_session(SessionSettings(master=master, work=Work.SHORT))
