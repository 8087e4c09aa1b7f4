"""What is pending: the last row of each id, deletions once, and what they cover."""

import pyarrow as pa

from omnigraph.integrity.deltas import POSITION
from omnigraph.mutation.pending import PendingChanges, PendingTable
from omnigraph.mutation.values import assign
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.parser import parse_schema

CATALOG = parse_schema("node P { n: I64? } node Q { w: [String]  v: Vector(2)? } edge K: P -> P")
P = CATALOG.node_type("P")


def table() -> PendingTable:
    return PendingChanges(CATALOG).table(P.table_key)


def rows(**numbers: int | None) -> pa.Table:
    found = [{"id": id_, "n": n, POSITION: ord(id_[0])} for id_, n in numbers.items()]
    return pa.Table.from_pylist(found, schema=table().schema)


def ids(*texts: str) -> pa.Array:
    return pa.array(texts, pa.utf8())


def held(pending: PendingTable) -> list[tuple[str, int | None]]:
    return [(each["id"], each["n"]) for each in pending.rows().to_pylist()]


def test_nothing_is_pending_at_first():
    pending = PendingChanges(CATALOG)
    assert pending.table(P.table_key).is_empty
    assert held(pending.table(P.table_key)) == []
    assert list(pending.changed_tables()) == []
    assert pending.delta().tables == {}


def test_the_last_row_of_an_id_stands():
    pending = table()
    for each in (rows(a=1, b=1), rows(b=2, c=2), rows(a=3), rows(d=None)):
        pending.put(each)
    assert sorted(held(pending)) == [("a", 3), ("b", 2), ("c", 2), ("d", None)]
    pending.put(rows(a=4))
    assert sorted(held(pending)) == [("a", 4), ("b", 2), ("c", 2), ("d", None)]


def test_rows_that_are_put_together_stand_as_they_are():
    pending = table()
    pending.put(rows(x=0))
    pending.put(pa.concat_tables([rows(a=1), rows(a=2), rows(x=1)]))
    assert held(pending) == [("a", 1), ("a", 2), ("x", 1)]


def test_no_rows_are_no_change():
    pending = table()
    pending.put(rows())
    pending.delete(ids())
    assert pending.is_empty
    assert pending.is_fresh


def test_a_deletion_takes_pending_rows_and_counts_once():
    pending = table()
    pending.put(rows(a=1, b=1))
    pending.delete(ids("a", "c"))
    pending.delete(ids("c", "d"))
    assert held(pending) == [("b", 1)]
    assert sorted(pending.deletions().to_pylist()) == ["a", "c", "d"]


def test_a_row_can_be_written_again_after_its_deletion():
    pending = table()
    pending.delete(ids("a"))
    pending.put(rows(a=2))
    delta = pending.delta()
    assert delta.upserts is not None
    assert delta.upserts["n"].to_pylist() == [2]
    assert pending.deletions().to_pylist() == ["a"]


def test_committed_rows_are_covered_by_what_replaces_or_deletes_them():
    pending = table()
    everything = ids("a", "b", "c", "d")
    assert pending.uncovered_ids(everything).to_pylist() == ["a", "b", "c", "d"]
    pending.put(rows(a=1))
    pending.put(rows(z=1))
    pending.delete(ids("c"))
    assert pending.uncovered_ids(everything).to_pylist() == ["b", "d"]


def test_rows_are_fresh_while_all_of_them_are():
    pending, seen = table(), []
    for part, fresh in ((rows(a=1), True), (rows(a=2), False), (rows(b=2), True)):
        pending.put(part, fresh=fresh)
        seen.append(pending.is_fresh)
    assert seen == [True, False, False]


def test_tables_are_kept_apart():
    pending = PendingChanges(CATALOG)
    pending.table(P.table_key).put(rows(a=1))
    pending.table(CATALOG.edge_type("K").table_key)
    assert [key for key, _ in pending.changed_tables()] == [P.table_key]
    assert set(pending.delta().tables) == {P.table_key}


def test_many_small_parts_become_one():
    pending = table()
    for number in range(2000):
        pending.put(rows(**{f"i{number % 500}": number}))
    assert dict(held(pending)) == {f"i{number % 500}": number for number in range(1500, 2000)}


def test_one_value_is_assigned_to_every_row():
    changed = assign(rows(a=1, b=None), {"n": 7, POSITION: 3})
    assert changed.to_pylist() == [
        {"id": "a", "n": 7, POSITION: 3},
        {"id": "b", "n": 7, POSITION: 3},
    ]
    assert changed.schema == rows().schema
    assert len(assign(rows(), {"n": 7})) == 0


def test_a_long_value_is_assigned_in_chunks():
    schema = PendingChanges(CATALOG).table(CATALOG.node_type("Q").table_key).schema
    nothing = pa.Table.from_pylist([{"id": str(n)} for n in range(50)], schema=schema)
    text = "x" * (50 << 20)
    column = assign(nothing, {"w": (text,)})["w"]
    # Two and a half gigabytes of text, which is one text and no more in memory.
    assert len(column) == 50
    assert pa.total_allocated_bytes() < 1 << 30
    assert len(column[49].as_py()[0]) == len(text)


def test_rows_fit_the_table_again():
    type_ = CATALOG.node_type("Q")
    schema = PendingChanges(CATALOG).table(type_.table_key).schema
    found = [
        {"id": "a", "w": ["x"], "v": [1.0, 2.0], POSITION: 1},
        {"id": "b", "w": [], "v": None, POSITION: 1},
    ]
    written = to_table(pa.Table.from_pylist(found, schema=schema), type_)
    assert written.schema == table_schema(type_)
    assert written["w"].to_pylist() == [["x"], []]
