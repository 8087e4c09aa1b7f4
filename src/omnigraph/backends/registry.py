"""The backends of one graph handle, by the names of their engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from omnigraph.backends.local import LocalBackend
from omnigraph.choices import EngineName

if TYPE_CHECKING:
    from omnigraph.backends.protocol import Backend


class Backends:
    """Returns backends by name. The local one is kept, with what its engine has cached."""

    def __init__(self) -> None:
        self.local = LocalBackend()

    def of(self, name: EngineName) -> Backend:
        """The backend of an engine; Spark is started when it is first used."""
        match name:
            case EngineName.LOCAL:
                return self.local
            case EngineName.SPARK:
                # Imported here, so that local work does not pay for the import of Spark.
                from omnigraph.backends.spark import SparkBackend

                return SparkBackend()
            case _:
                assert_never(name)
