"""Early counts: tasks that read a table count its rows by value before they pass them to Spark.

Each row that comes from Python is copied, value by value, and a message of leaf elimination only
counts rows by one end of an edge. So where a plan reads a table to count its rows in groups, the
tasks that read it count what they have read, and Spark adds up their counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from omnigraph.limits import SPARK_BATCH_BYTES_MAX, SPARK_PARTITION_ROWS_MAX
from omnigraph.relational.trees import column, named_column

COUNT: Final = "@count"
"""The column of a counted relation with the number of rows that have its other values.

Values may come again, with another part of their number."""

_PLAIN: Final = frozenset(["expressions", "from_"])
"""What a query has that only names columns of a table."""


def count_early(tree: exp.Query, countable: Collection[str]) -> tuple[exp.Query, frozenset[str]]:
    """A copy of the tree with the same rows, and the relations that it needs counted.

    Args:
        countable: The relations that can be counted.
    """
    tree = tree.copy()
    uses = Counter(node.name for node in tree.find_all(exp.Table))
    parts = {part.alias: part.this for part in tree.find_all(exp.CTE) if uses[part.alias] == 1}
    counted = set()
    for select in list(tree.find_all(exp.Select)):
        source = _source_of(select, _PLAIN | {"group", "with_"})
        if source is None or not _counts_groups(select):
            continue
        # What is counted is the relation, or a part of the tree that only names its columns.
        naming = parts.get(source.name)
        relation = source if naming is None else _source_of(naming, _PLAIN)
        if relation is None or relation.name not in countable or uses[relation.name] != 1:
            continue
        if naming is not None:
            if not all(isinstance(each.unalias(), exp.Column) for each in naming.expressions):
                continue
            number = named_column(column(COUNT, relation.alias_or_name), COUNT)
            naming.append("expressions", number)
        for node in filter(_counts_rows, [each.unalias() for each in select.expressions]):
            node.replace(exp.Sum(this=column(COUNT, source.alias_or_name)))
        counted.add(relation.name)
    return tree, frozenset(counted)


def _source_of(query: exp.Expr, allowed: Collection[str]) -> exp.Table | None:
    """The only table that a query reads; None if it has more than is allowed."""
    if not isinstance(query, exp.Select):
        return None
    if not {name for name, value in query.args.items() if value} <= set(allowed):
        return None
    source = query.args.get("from_")
    return source.this if source is not None and isinstance(source.this, exp.Table) else None


def _counts_groups(select: exp.Select) -> bool:
    """Whether it has the number of rows of each group, and otherwise only what they have alike."""
    group = select.args.get("group")
    if group is None or {name for name, value in group.args.items() if value} != {"expressions"}:
        return False
    values = [each.unalias() for each in select.expressions]
    return all(isinstance(each, exp.Column) for each in group.expressions) and all(
        isinstance(each, exp.Column) or _counts_rows(each) for each in values
    )


def _counts_rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)


def count_values(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The values of rows, and how many rows have them. Runs in an executor; safe to run twice."""
    for rows in _gather(batches):
        counts = rows.group_by(list(columns)).aggregate([([], "count_all")])
        counts = counts.select([*columns, "count_all"]).rename_columns([*columns, COUNT])
        rows_max = max(1, SPARK_BATCH_BYTES_MAX * counts.num_rows // max(1, counts.nbytes))
        yield from counts.combine_chunks().to_batches(max_chunksize=rows_max)


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows, as many at a time as a task usually has."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch)
        if sum(each.num_rows for each in gathered) >= SPARK_PARTITION_ROWS_MAX:
            yield pa.Table.from_batches(gathered)
            gathered = []
    if gathered:
        yield pa.Table.from_batches(gathered)
