"""Results of algorithms: a row for each node, where the engine has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.algorithms.requests import Algorithm, order_of
from omnigraph.choices import EngineName
from omnigraph.errors import TypeNotFoundError
from omnigraph.model.brief import brief

if TYPE_CHECKING:
    from omnigraph.engine.spark.execute import Frame, Session


@dataclass(frozen=True, slots=True)
class Rounds:
    """How an algorithm ended that repeats itself.

    Attributes:
        count: How many rounds there were.
        converged: Whether another one would have changed nothing, or less than the tolerance.
    """

    count: int
    converged: bool


@brief
@dataclass(frozen=True, slots=True)
class AlgorithmResult:
    """What an algorithm computed: `type` and `id` of each node, and its values.

    Attributes:
        rows: An Arrow table, or a DataFrame if Spark computed it, whose rows executors hold.
        rounds: How it ended, if it repeats itself.
        engine: The engine that carried it out, and `why` it was chosen.
    """

    algorithm: Algorithm
    node_types: tuple[str, ...]
    rows: pa.Table | Frame
    rounds: Rounds | None
    engine: EngineName
    why: str

    def of(self, type_name: str) -> pa.Table | Frame:
        """The nodes of one type: `id` and the values, where the engine has them.

        Raises:
            TypeNotFoundError: the algorithm saw no nodes of such a type.
        """
        if type_name not in self.node_types:
            message = f"the result has no nodes of type {type_name}"
            hint = f"it has those of {', '.join(self.node_types)}"
            raise TypeNotFoundError(message, hint=hint)
        if isinstance(self.rows, pa.Table):
            own = self.rows.filter(pc.equal(self.rows["type"], type_name))
            return own.drop_columns(["type"])
        return self.rows.where(self.rows["type"] == type_name).drop("type")

    def to_arrow(self) -> pa.Table:
        """All rows, in this process."""
        return self.rows if isinstance(self.rows, pa.Table) else self.rows.toArrow()

    def first(self, count: int) -> pa.Table:
        """The first rows as people list them: the largest values, or the nearest nodes."""
        order = order_of(self.algorithm)
        if isinstance(self.rows, pa.Table):
            keys = [(name, "descending" if largest else "ascending") for name, largest in order]
            return self.rows.sort_by(keys).slice(0, count)
        columns = [
            self.rows[name].desc() if largest else self.rows[name].asc_nulls_last()
            for name, largest in order
        ]
        return self.rows.orderBy(*columns).limit(count).toArrow()

    def frame(self, spark: Session | None = None) -> Frame:
        """All rows as a DataFrame, whichever engine computed them.

        Raises:
            InvalidInputError: Spark is not installed, or cannot be used.
        """
        if not isinstance(self.rows, pa.Table):
            return self.rows
        from omnigraph.engine.extras import require_spark

        require_spark()
        from omnigraph.engine.spark.execute import SparkEngine
        from omnigraph.engine.spark.relations import given_frame

        return given_frame(SparkEngine(spark).session, self.rows)
