"""Results of queries: rows, where they were read, and how a query would run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.choices import EngineName
from omnigraph.engine.extras import require_pandas
from omnigraph.model.brief import brief

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from omnigraph.engine.spark.execute import Frame


@brief
@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a read query, and where they were read.

    Attributes:
        commit_id: The commit whose graph the rows were read from.
        engine: The engine that ran it, and `why` it was chosen.
        notes: What the rows do not show, such as rows that wait to be embedded.
    """

    commit_id: str
    engine: EngineName
    why: str
    _table: pa.Table
    _open_frame: Callable[[], Frame] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; columns keep Arrow's types, so nulls stay nulls.

        Raises:
            InvalidInputError: pandas is not installed.
        """
        require_pandas()
        import pandas as pd

        return self._table.to_pandas(types_mapper=pd.ArrowDtype)

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        return self._table.to_pylist()  # type: ignore[no-any-return]

    def frame(self) -> Frame:
        """The query as a Spark DataFrame over the same snapshot, not run before it is used.

        Raises:
            InvalidInputError: Spark is not installed, or there is no Java that can run it.
            NotAllowedError: a server ran the query: Spark reads where the graph is stored.
        """
        return self._open_frame()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)


@brief
@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query would be run; its text is for people.

    Attributes:
        engine: The engine that would run it, and `why` it was chosen.
        means: By what the engine would answer it, and why.
        sql: The plan, in that engine's dialect; arrays say the same without it.
        reads: Each relation of the plan, and the table and columns it reads.
        looks_up: What may be found by an index instead of a scan.
        searches: Each search of the plan, and how it is answered.
    """

    engine: EngineName
    why: str
    means: str
    sql: str
    reads: Mapping[str, str]
    looks_up: tuple[str, ...]
    searches: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        reads = "\n".join(f"  {name}: {what}" for name, what in self.reads.items())
        looks_up = "\n".join(f"  {lookup}" for lookup in self.looks_up) or "  nothing"
        searches = "".join(f"\n  {name}: {how}" for name, how in self.searches.items())
        searched = f"searches:{searches}\n" if searches else ""
        return (
            f"engine: {self.engine} ({self.why})\n"
            f"answers by: {self.means}\n"
            f"reads:\n{reads}\n{searched}may look up:\n{looks_up}\nplan:\n{self.sql}"
        )
