"""Random mutations of random graphs do what they do to dictionaries."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.integrity.violations import IntegrityError
from tests.contract.mutation.builders import Mutated, mutated
from tests.contract.mutation.naive import (
    Alone,
    Condition,
    Degree,
    Delete,
    Derive,
    Either,
    Insert,
    Neighbours,
    Plus,
    State,
    Statement,
    Test,
    Update,
    carried_out,
)

SCHEMA = """
node P { name: String @key  n: I32?  t: String? }
edge K: P -> P { w: I32? }
"""
names = st.sampled_from(["a", "b", "c", "it's"])
edge_ids = st.sampled_from(["k1", "k2", "k3"])
numbers = st.sampled_from([None, 0, 1, 2])
texts = st.sampled_from([None, "", "x", "it's"])
people = st.fixed_dictionaries({"name": names, "n": numbers, "t": texts})
edges = st.fixed_dictionaries({"id": edge_ids, "src": names, "dst": names, "w": numbers})


def any_of(column: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[Condition]:
    known = values.filter(lambda value: value is not None)
    compared = st.builds(
        Condition, st.just(column), st.sampled_from(["=", "=", "!=", "<", ">="]), known
    )
    return compared | st.builds(
        Condition, st.just(column), st.sampled_from(["is null", "is not null"])
    )


def several(
    *each: st.SearchStrategy[Condition], others: st.SearchStrategy[Test] | None = None
) -> st.SearchStrategy[list[Test]]:
    one: st.SearchStrategy[Condition] = st.one_of(each)
    either = st.builds(Either, st.tuples(one, one), st.booleans())
    any_: st.SearchStrategy[Test] = st.one_of(one, one, either)
    return st.lists(any_ if others is None else any_ | others, min_size=1, max_size=2)


def fixed(column: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[Condition]:
    return st.builds(Condition, st.just(column), st.sampled_from(["=", "=", "!="]), values)


other_rows: st.SearchStrategy[Test] = st.one_of(
    st.builds(Neighbours, st.sampled_from(["=", ">="]), st.integers(0, 2), st.booleans()),
    st.builds(Alone, st.booleans()),
)
of_people = several(
    fixed("name", names),
    fixed("id", names),
    any_of("n", numbers),
    any_of("t", texts),
    others=other_rows,
)
of_edges = several(
    fixed("id", edge_ids), fixed("src", names), fixed("dst", names), any_of("w", numbers)
)
computed = st.builds(Plus, st.just("n"), st.sampled_from([1, -1])) | st.builds(
    Degree, st.booleans()
)
new_values = st.dictionaries(st.just("n"), numbers | computed, min_size=1) | st.fixed_dictionaries(
    {"n": numbers, "t": texts}
)
writes: st.SearchStrategy[Statement] = st.one_of(
    st.builds(Insert, st.just("P"), people),
    st.builds(Insert, st.just("K"), edges),
    st.builds(Update, st.just("P"), new_values, of_people),
    st.builds(Update, st.just("K"), st.fixed_dictionaries({"w": numbers}), of_edges),
)
deletes: st.SearchStrategy[Statement] = st.one_of(
    st.builds(Delete, st.just("P"), of_people), st.builds(Delete, st.just("K"), of_edges)
)
derived: st.SearchStrategy[Statement] = st.builds(
    Derive,
    st.booleans(),
    st.lists(any_of("n", numbers) | fixed("id", names), max_size=2),
    st.sampled_from([-1, 1]),
)
queries = st.one_of(
    st.lists(st.one_of(writes, writes, derived), min_size=1, max_size=5),
    st.lists(deletes, min_size=1, max_size=3),
)


@st.composite
def states(draw: st.DrawFn) -> State:
    nodes = draw(st.lists(people, max_size=4, unique_by=lambda row: row["name"]))
    known = [row["name"] for row in nodes]
    drawn = draw(st.lists(edges, max_size=3, unique_by=lambda row: row["id"]))
    kept = [row for row in drawn if row["src"] in known and row["dst"] in known]
    return {
        "P": {str(row["name"]): dict(row) for row in nodes},
        "K": {str(row["id"]): {k: v for k, v in row.items() if k != "id"} for row in kept},
    }


def contents(graph: Mutated) -> State:
    return {name: graph.rows(name) for name in ("P", "K")}


@pytest.mark.hypothesis
def test_statements_do_what_they_do_to_dictionaries(tmp_path: Path):
    numbers_of_graphs = count()

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(states(), st.lists(queries, min_size=1, max_size=3), st.booleans())
    def holds(state: State, asked: list[list[Statement]], indexed: bool):  # noqa: FBT001
        rows = {
            "P": list(state["P"].values()),
            "K": [{"id": id_, **row} for id_, row in state["K"].items()],
        }
        where = tmp_path / str(next(numbers_of_graphs))
        graph = mutated(where, SCHEMA, {k: v for k, v in rows.items() if v}, indexed=indexed)
        for statements in asked:
            body = "\n".join(each.text() for each in statements)
            expected = carried_out(state, statements)
            if expected is None:
                with pytest.raises(IntegrityError) as caught:
                    graph.run(body)
                assert {str(each.rule) for each in caught.value.violations} == {"endpoint"}
            else:
                assert graph.counts(body) == expected.counts(state), body
                state = expected.state
            assert contents(graph) == state, body

    holds()
