"""Patterns on arrays have the same answers as in SQL, after each kind of commit and on branches."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sqlglot.expressions import Literal

from omnigraph import graph
from omnigraph.backends.local import LocalBackend
from omnigraph.engine.local.matching import hops, join, match, matcher, messages
from omnigraph.engine.local.matching.results import answer
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.graph import Graph
from omnigraph.query.lowering import rows
from omnigraph.relational.patterns import PatternPlan

SCHEMA = """\
node Person { name: String @key  age: I64?  score: F64? }
node City { name: String @key }
edge Knows: Person -> Person { weight: I64? }
edge LivesIn: Person -> City { @key(src, dst) }
"""

QUERIES = {
    "paths": "match { $a knows $b  $b knows $c } return { count($c) as n }",
    "undirected": "match { $a <knows> $b } return { $a.name, count($b) as n } order { n desc }",
    "sums": """match { $a knows $b  $b livesIn $c }
        return { $c.name as city, sum($b.age) as s, avg($a.age) as m, count($a.age) as n }""",
    "edges": "match { $a $k:knows $b } return { $a.name, sum($k.weight), count($k) as n }",
    "edges on a path": """match { $a $k:knows $b  $b knows $c }
        return { $a.name as a, sum($k.weight) as w }""",
    "triangles with others": """match { $a knows $b  $b knows $c  $a knows $c
        $c knows $d  $b knows $e } return { count($d) as n, sum($e.age) as s }""",
    "walk": 'match { $a: Person {name: "p1"} $a knows{1,3} $b } return { $b.name as b }',
    "parallels": "match { $a $k:knows $b } return { count($b) as n }",
    "triangles": "match { $a knows $b  $b knows $c  $a knows $c } return { count($a) as n }",
    "strangers": """match { $a knows $b  $b knows $c  not { $a knows $c } }
        return { $a.name as a, $c.name as c, count($b) as n } order { n desc } limit 7""",
    "lonely": "match { $a knows $b  not { $b livesIn $c } } return { $b.name, count($a) as n }",
    "rows": "match { $a knows $b  $a.age < $b.age } return { $a.name as a, $b.name as b }",
    "all people": """match { $a: Person  optional { $a knows $b  $b livesIn $c } }
        return { $a.name as a, count($b) as n, sum($b.age) as s, count(*) as rows }""",
    "whoever": """match { $a livesIn $c  optional { $a knows $b }  $b.age is null or $b.age > 1 }
        return { $a.name as a, $b.name as b }""",
    "places": """match { $a: Person  $x: City | Person  $a knows|livesIn $x  $x.name != "p1" }
        return { type($x) as type, count($a) as n }""",
    "subqueries": """match { $a: Person  exists { $a livesIn $_ } or count { $a <knows> $_ } > 1 }
        return { $a.name as a, count { $a knows $_ } as n, avg { $a knows $b  $b.age } as m,
                 sum { $a $k:knows $b  $b livesIn $c  $k.weight } as w }
        order { count { $a knows $b  not { $b livesIn $_ } } desc, a }""",
    "both": "match { $a: Person  $c: City } return { count($a), count(distinct $c.name) }",
}


def asked(text: str) -> str:
    return f"query q() {{ {text} }}"


@pytest.fixture
def by_sql(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Graph]:
    """Opens a graph whose engine has no arrays."""

    def open_without(uri: Path) -> Graph:
        handle = graph.open(uri, read_only=True)
        backend = handle._queries.local
        assert isinstance(backend, LocalBackend)
        monkeypatch.setattr(backend._engine, "_uses_arrays", False)
        return handle

    return open_without


def test_arrays_follow_every_commit(
    tmp_path: Path, by_sql: Callable[[Path], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = []

    def counted(matching: PatternPlan, matched: match.MatchedGraph) -> pa.Table:
        answers.append(1)
        return answer(matching, matched)

    monkeypatch.setattr(matcher, "answer", counted)
    uri, dice = tmp_path / "graph", random.Random(16)
    made = graph.init(uri, SCHEMA)
    plain = by_sql(uri)
    for step in range(14):
        branch = "main"
        if step == 5:
            made.branches.create("draft")
        if step >= 5 and step % 2:
            branch = "draft"
        if step == 12:
            made.merge("draft", into="main", resolve="ours")
        change(made, branch, step, dice)
        for name, text in QUERIES.items():
            ours = made.query(asked(text), branch=branch).arrow()
            theirs = plain.query(asked(text), branch=branch).arrow()
            assert ours == theirs, f"{name} after step {step}"
    assert len(answers) >= 9 * 14, "arrays have answered"


def change(made: Graph, branch: str, step: int, dice: random.Random) -> None:
    """Insert, update and delete, one commit each; sometimes rewrite files."""
    people = [f"p{number}" for number in range(step + 3)]
    lines = [f'insert Person {{ name: "{people[-1]}", age: {step}, score: 0.5 }}']
    if step % 4 == 0:
        lines.append(f'insert Person {{ name: "quiet{step}" }}')
        lines.append(f'insert City {{ name: "c{step}" }}')
    lines += [f'insert Person {{ name: "{name}"  age: 1 }}' for name in people[:-1]]
    run(made, branch, lines)
    ends = [dice.choice(people) for _ in range(12)]
    weights = ["weight: 1", "weight: 2", ""]
    edges = [
        f'insert Knows {{ from: "{source}"  to: "{target}"  {dice.choice(weights)} }}'
        for source, target in zip(ends[::2], ends[1::2], strict=True)
    ]
    city = step - step % 4
    if branch == "main":
        edges.append(f'insert LivesIn {{ from: "{people[-1]}"  to: "c{city}" }}')
    run(made, branch, edges)
    if step % 3 == 2:
        run(made, branch, [f'update Person set {{ age: {100 + step} }} where name = "{people[1]}"'])
    if step % 5 == 4:
        run(made, branch, [f'delete Person where name = "{people[-2]}"'])
    if step % 7 == 6 and branch == "main":
        made.optimize()


def run(made: Graph, branch: str, lines: list[str]) -> None:
    made.mutate("query m() { " + "\n".join(lines) + " }", branch=branch)


def test_rows_are_filtered_alike_in_small_and_in_large_blocks(
    tmp_path: Path, by_sql: Callable[[Path], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of a few rows is tested row by row, a larger one by all nodes that pass."""
    monkeypatch.setattr(match, "_SMALL_ROWS_MAX", 0)
    for module in (join, hops):
        monkeypatch.setattr(module, "MATCHED_BLOCK_STEPS", 8)
    uri, dice = tmp_path / "graph", random.Random(3)
    made = graph.init(uri, SCHEMA)
    people = [f"p{number:02}" for number in range(40)]
    lines = ['insert City { name: "c" }']
    lines += [
        f'insert Person {{ name: "{name}", age: {dice.randrange(10)} }}\n'
        f'insert LivesIn {{ from: "{name}"  to: "c" }}'
        for name in people
    ]
    for place, name in enumerate(people):
        known = dice.sample(people[:8], 1) if place < 8 else dice.sample(people, 12)
        lines += [f'insert Knows {{ from: "{name}"  to: "{other}" }}' for other in known]
    run(made, "main", lines)
    text = asked("""match { $a knows $b  $b knows $c  $a knows $c  $c livesIn $d  $c.age > 4 }
        return { $a.name as a, $b.name as b, $c.name as c, count($d) as n }""")
    assert made.query(text).arrow() == by_sql(uri).query(text).arrow()


@pytest.mark.parametrize(
    ("where", "name", "planted", "found_by"),
    [
        pytest.param(
            match.PatternMatch,
            "_without",
            lambda self, variable, _: self.listed(variable),
            "lonely",
            id="negations",
        ),
        pytest.param(hops.PairHop, "has_factor", False, "parallels", id="parallel edges"),
        pytest.param(match, "multiply", lambda values, _: values, "sums", id="weights"),
        pytest.param(
            messages,
            "multiply",
            lambda values, _: values,
            "edges on a path",
            id="weights in messages",
        ),
        pytest.param(
            join,
            "multiply",
            lambda values, _: values,
            "triangles with others",
            id="weights in joins",
        ),
        pytest.param(
            join,
            "are_linked",
            lambda *pairs, **_: np.ones(len(pairs[2]), np.bool_),
            "triangles",
            id="membership",
        ),
        pytest.param(
            hops.WalkHop,
            "_walk",
            lambda self, nodes: hops.PairHop(self.adjacency).expand(nodes),
            "walk",
            id="walks",
        ),
    ],
)
def test_a_fault_on_arrays_would_be_seen(
    where: object,
    name: str,
    planted: object,
    found_by: str,
    tmp_path: Path,
    by_sql: Callable[[Path], Graph],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = grown(tmp_path / "graph")
    text = asked(QUERIES[found_by])
    expected = by_sql(tmp_path / "graph").query(text).arrow()
    monkeypatch.setattr(matcher, "KEYED_QUERIES_MAX", 0)
    assert made.query(text).arrow() == expected
    monkeypatch.setattr(where, name, planted)
    assert made.query(text).arrow() != expected


def grown(uri: Path) -> Graph:
    """A graph after some commits, with parallel edges."""
    made, dice = graph.init(uri, SCHEMA), random.Random(16)
    for step in range(4):
        change(made, "main", step, dice)
    run(made, "main", ['insert Knows { from: "p0"  to: "p1" }'] * 2)
    return made


@pytest.mark.parametrize(
    ("name", "planted", "found_by"),
    [
        pytest.param("sum_weights", lambda _: Literal.number(1), "paths", id="weights"),
        pytest.param("_subtract", lambda _, kept, __: kept, "lonely", id="negations"),
        pytest.param("or_one", lambda weight: weight, "all people", id="optional weights"),
        pytest.param("union", lambda parts, **_: parts[0], "places", id="several types"),
        pytest.param("_keep", lambda _, kept, __: kept, "whoever", id="optional rows"),
    ],
)
def test_a_fault_in_sql_would_be_seen(
    name: str,
    planted: object,
    found_by: str,
    tmp_path: Path,
    by_sql: Callable[[Path], Graph],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = asked(QUERIES[found_by])
    expected = grown(tmp_path / "graph").query(text).arrow()
    assert by_sql(tmp_path / "graph").query(text).arrow() == expected
    monkeypatch.setattr(rows, name, planted)
    assert by_sql(tmp_path / "graph").query(text).arrow() != expected


def test_sums_that_do_not_fit_are_refused_on_arrays_too(tmp_path: Path) -> None:
    made = graph.init(tmp_path / "graph", SCHEMA)
    lines = [f'insert Person {{ name: "p{number}", age: {2**62} }}' for number in range(4)]
    lines += [f'insert Knows {{ from: "p{number}"  to: "p0" }}' for number in range(4)]
    run(made, "main", lines)
    total = asked("match { $a knows $b } return { sum($a.age) as s }")
    with pytest.raises(InvalidInputError) as refused:
        made.query(total)
    assert refused.value.code is ErrorCode.VALUE_OUT_OF_RANGE
    mean = asked("match { $a knows $b } return { avg($a.age) as m }")
    assert made.query(mean).rows() == [{"m": float(2**62)}]
    compared = "sum { $a knows $b  $a.age } > 9223372036854775807"
    above = asked(f"match {{ $b: Person  {compared} }} return {{ $b.name as b }}")
    assert made.query(above).rows() == [{"b": "p0"}]


def test_explain_says_by_what_a_query_is_answered(tmp_path: Path) -> None:
    made = graph.init(tmp_path / "graph", SCHEMA)
    run(made, "main", ['insert Person { name: "p" }', 'insert Knows { from: "p"  to: "p" }'])
    assert made.explain(asked(QUERIES["paths"])).means == ("arrays (its edges fit into memory)")
    assert made.explain(asked("match { $p: Person } return { count($p) as n }")).means == (
        "SQL (it follows no edges)"
    )
    degree = "count { $p knows $_ } as n"
    by_parts = "arrays for parts of it (their edges fit into memory), then SQL"
    assert made.explain(asked(f"match {{ $p: Person }} return {{ {degree} }}")).means == by_parts
    optional = "match { $p: Person  optional { $p knows $q } }"
    counted = asked(f"{optional} return {{ $p.age as a, count($q) as n, sum($q.age) as s }}")
    assert made.explain(counted).means == by_parts
    listed = made.explain(asked(f"{optional} return {{ $p, $q }}"))
    assert listed.means == "SQL (it has optional parts)"
    by_key = asked('match { $p: Person {name: "p"} } return { $p.age as age }')
    assert made.explain(by_key).means == "a lookup (it wants one row by its key)"
