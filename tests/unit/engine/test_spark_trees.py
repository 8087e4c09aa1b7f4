"""Trees for Spark: without columns that nothing uses, and over counts instead of rows."""

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from omnigraph.engine.spark import counting
from omnigraph.engine.spark.counting import COUNT, count_early, count_values
from omnigraph.engine.spark.pruning import prune
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import GivenRows, Relation, TableRows

EDGES = TableRows(TableKey.parse("edge:Knows"), ("src", "dst", "id"))


def tree(text: str) -> exp.Query:
    parsed = parse_one(text)
    assert isinstance(parsed, exp.Query)
    return parsed


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("WITH t AS (SELECT e.src AS a, e.dst AS b FROM r AS e) SELECT t.b AS c FROM t", ("dst",)),
        ("SELECT COUNT(*) AS c FROM r AS e", ()),
        ("SELECT e.src AS c FROM r AS e WHERE e.id > 'x'", ("src", "id")),
        ("SELECT x.src AS c FROM r AS x JOIN r AS y ON x.src = y.dst", ("src", "dst")),
        ("SELECT g.a AS c FROM g ANTI JOIN r AS e ON e.dst = g.a", ("dst",)),
        ("SELECT g.a AS c FROM g WHERE EXISTS (SELECT 1 FROM r AS e WHERE e.id = g.a)", ("id",)),
        ("SELECT DISTINCT t.a AS c FROM (SELECT e.src AS a, e.id AS i FROM r AS e) AS t", ("src",)),
        (
            "SELECT t.a AS c FROM (SELECT DISTINCT e.src AS a, e.id AS i FROM r AS e) AS t",
            ("src", "id"),
        ),
        # Which table has a column, or which columns there are, is not known here.
        ("SELECT src AS c FROM r AS e", EDGES.columns),
        ("SELECT t.src AS c FROM (SELECT * FROM r AS e) AS t", EDGES.columns),
    ],
)
def test_columns_that_nothing_uses_are_not_read(text: str, columns: tuple[str, ...]) -> None:
    before: dict[str, Relation] = {"r": EDGES, "g": GivenRows()}
    whole = tree(text)
    _, relations = prune(whole, before)
    pruned = relations["r"]
    assert isinstance(pruned, TableRows)
    assert pruned.columns == columns
    assert whole == tree(text)


def test_a_relation_that_nothing_uses_is_not_read() -> None:
    text = "WITH t AS (SELECT e.src AS a FROM r AS e) SELECT g.a AS c FROM g"
    pruned, relations = prune(tree(text), {"r": EDGES, "g": GivenRows()})
    assert (pruned.sql(), list(relations)) == ("SELECT g.a AS c FROM g", ["g"])


def test_counts_of_groups_are_sums_of_early_counts() -> None:
    text = (
        "WITH t AS (SELECT e.dst AS b FROM r AS e), "
        "m AS (SELECT COUNT(*) AS w, l.b AS a FROM t AS l GROUP BY l.b) "
        "SELECT COUNT(*) AS n FROM m"
    )
    counted, names = count_early(tree(text), ["r"])
    assert names == {"r"}
    assert counted.sql() == (
        f'WITH t AS (SELECT e.dst AS b, e."{COUNT}" AS "{COUNT}" FROM r AS e), '
        f'm AS (SELECT SUM(l."{COUNT}") AS w, l.b AS a FROM t AS l GROUP BY l.b) '
        "SELECT COUNT(*) AS n FROM m"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM r AS e",
        "SELECT COUNT(e.src) AS n FROM r AS e GROUP BY e.dst",
        "SELECT MIN(e.src) AS n FROM r AS e GROUP BY e.dst",
        "SELECT COUNT(*) AS n FROM r AS e GROUP BY LENGTH(e.dst)",
        "SELECT COUNT(*) AS n FROM r AS e WHERE e.src > 'x' GROUP BY e.dst",
        "SELECT COUNT(*) AS n FROM r AS e GROUP BY e.dst HAVING COUNT(*) > 1",
        "SELECT COUNT(*) AS n FROM r AS e, r AS f GROUP BY e.dst",
        "WITH t AS (SELECT DISTINCT e.dst AS b FROM r AS e) "
        "SELECT COUNT(*) AS n FROM t AS l GROUP BY l.b",
        "WITH t AS (SELECT e.dst AS b FROM r AS e) "
        "SELECT COUNT(*) AS n FROM t AS l, t AS k GROUP BY l.b",
        "WITH t AS (SELECT e.dst AS b FROM r AS e), "
        "m AS (SELECT COUNT(*) AS n FROM t AS l GROUP BY l.b) SELECT m.n AS n FROM m, t",
        "WITH t AS (SELECT e.dst || 'x' AS b FROM r AS e) "
        "SELECT COUNT(*) AS n FROM t AS l GROUP BY l.b",
        "SELECT COUNT(*) AS n FROM g AS e GROUP BY e.dst",
    ],
)
def test_what_needs_each_row_is_not_counted_early(text: str) -> None:
    assert count_early(tree(text), ["r"]) == (tree(text), frozenset())


def test_values_are_counted_batch_after_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SPARK_PARTITION_ROWS_MAX", 4)
    texts = [["a", "b", "a"], ["a", None], [], ["a"]]
    batches = [pa.record_batch({"src": pa.array(each, pa.string())}) for each in texts]
    found = [batch.to_pydict() for batch in count_values(batches, ["src"])]
    counts = [dict(zip(each["src"], each[COUNT], strict=True)) for each in found]
    assert counts == [{"a": 3, "b": 1, None: 1}, {"a": 1}]
