"""`graph.query`: one snapshot, two engines, every form of the answer."""

from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from omnigraph.choices import EngineName
from omnigraph.engine.choose import ENVIRONMENT_VARIABLE, measure_plan
from omnigraph.errors import InvalidInputError, InvalidParameterError, NotFoundError
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.lang.diagnostics import DiagnosticsError
from omnigraph.query.lowering.plan import lower
from tests.support.facade_graph import PEOPLE, SCHEMA
from tests.support.graphs import add_rows, graph_with

PEOPLE_BY_NAME = "query all() { match { $p: Person } return { $p.name, $p.age } }"
TWO = PEOPLE_BY_NAME + " query none() { match { $c: City } return { count($c) as n } }"


def test_an_answer_comes_in_every_form(graph: Graph, engine: str) -> None:
    answer = graph.query(PEOPLE_BY_NAME, engine=engine)
    expected = [{"p.name": each["name"], "p.age": each["age"]} for each in PEOPLE]

    assert answer.rows() == expected
    assert answer.arrow().schema.field("p.age").type == pa.int32()
    assert answer.pandas()["p.name"].to_list() == ["ada", "bob", "cy"]
    assert len(answer) == 3
    assert pa.table(answer).to_pylist() == expected
    assert answer.commit_id == graph.snapshot().head.commit_id
    assert answer.engine == engine
    assert answer.why == "requested"


def test_a_type_that_never_had_rows_has_no_values_of_any_type(tmp_path: Path, engine: str) -> None:
    schema = "node V { a: Blob?  b: [Blob]?  c: Vector(2)?  d: [I32]?  e: U64?  f: DateTime? }"
    empty = graph_with(tmp_path / "empty", schema, {})
    query = "query q() { match { $v: V } return { $v.a $v.b $v.c $v.d $v.e $v.f } }"
    assert empty.query(query, engine=engine).rows() == []


def test_an_answer_as_a_frame_has_the_same_rows(graph: Graph, engine: str, spark: object) -> None:
    assert spark is not None
    answer = graph.query(PEOPLE_BY_NAME, engine=engine)
    assert answer.frame().toArrow().to_pylist() == answer.rows()


def test_a_query_is_chosen_by_its_name(graph: Graph) -> None:
    assert graph.query(TWO, name="none").rows() == [{"n": 1}]
    with pytest.raises(InvalidParameterError, match="none was named"):
        graph.query(TWO)
    with pytest.raises(InvalidParameterError, match='no query "some"') as refused:
        graph.query(TWO, name="some")
    assert refused.value.hint == "it has all, none"
    with pytest.raises(InvalidParameterError, match='no query "non"') as refused:
        graph.query(TWO, name="non")
    assert refused.value.hint == "did you mean none?"


def test_a_mutation_is_refused_with_the_way_to_run_it(graph: Graph) -> None:
    with pytest.raises(InvalidInputError) as refused:
        graph.query('query add() { insert City { name: "Rome" } }')
    assert "mutate" in refused.value.hint


def test_what_is_wrong_with_a_text_is_shown_at_its_place(graph: Graph) -> None:
    with pytest.raises(DiagnosticsError) as refused:
        graph.query("query q() { match { $p: Persn } return { $p.nam } }")
    (found,) = [each for each in refused.value.diagnostics if each.code == "T1"]
    assert "Person" in found.hint


def test_a_query_may_lie_in_a_file_and_diagnostics_name_it(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "people.gq"
    file.write_text(PEOPLE_BY_NAME, encoding="utf-8-sig")

    assert graph.query(file).rows() == graph.query(PEOPLE_BY_NAME).rows()
    assert str(graph.explain(file)) == str(graph.explain(PEOPLE_BY_NAME))
    with pytest.raises(NotFoundError, match=r"query file .* does not exist") as missing:
        graph.query(tmp_path / "peple.gq")
    assert missing.value.hint == "did you mean people.gq?"
    file.write_text("query q() { match { $p: Persn } return { $p } }", encoding="utf-8")
    for run in (graph.query, graph.explain, graph.mutate):
        with pytest.raises(DiagnosticsError, match=r"people\.gq:1:25"):
            run(file)
        with pytest.raises(DiagnosticsError, match="query:1:25"):
            run(file.read_text(encoding="utf-8"))


def test_the_name_of_a_file_is_no_query(graph: Graph) -> None:
    for run in (graph.query, graph.explain, graph.mutate):
        with pytest.raises(InvalidParameterError, match=r"people\.gq is a file name") as refused:
            run("people.gq")
        assert 'Path("people.gq") in Python' in refused.value.hint


def test_reads_see_the_commit_they_name_and_nothing_later(tmp_path_factory: object) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    where = tmp_path_factory.mktemp("later") / "graph.omni"
    graph = graph_with(where, SCHEMA, {"Person": PEOPLE})
    before = graph.snapshot()
    count = "query q() { match { $p: Person } return { count($p) as n } }"
    add_rows(graph, {"Person": [{"name": "di", "age": 1, "note": None}]})

    assert graph.query(count).rows() == [{"n": 4}]
    assert graph.query(count, commit=before.head.commit_id).rows() == [{"n": 3}]
    assert graph.query(count, version=before.manifest_version).rows() == [{"n": 3}]
    with pytest.raises(NotFoundError, match="no branch draft"):
        graph.query(count, branch="draft")


def test_the_clock_of_the_graph_gives_now(tmp_path_factory: pytest.TempPathFactory) -> None:
    graph = graph_with(tmp_path_factory.mktemp("now") / "g", SCHEMA, {"City": [{"name": "Oslo"}]})
    before = datetime.now(UTC)  # noqa: TID251  # the real one, to compare with
    (row,) = graph.query(
        "query q() { match { $c: City } return { now() as t, now() as u } }"
    ).rows()
    assert row["t"] == row["u"] >= before


def test_the_engine_may_come_from_the_environment(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "local")
    assert graph.query(PEOPLE_BY_NAME).why == "requested"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "abacus")
    with pytest.raises(InvalidParameterError, match=r"'abacus', which \$OMNIGRAPH_ENGINE names"):
        graph.query(PEOPLE_BY_NAME)
    with pytest.raises(InvalidParameterError, match="'loom' is not a valid engine"):
        graph.query(PEOPLE_BY_NAME, engine="loom")


def test_small_plans_stay_local_and_large_ones_go_to_spark(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = graph.explain(PEOPLE_BY_NAME)
    assert chosen.engine is EngineName.LOCAL
    assert "tables of" in chosen.why
    monkeypatch.setitem(measure_plan.__globals__, "LOCAL_BYTES_MAX", 10)
    chosen = graph.explain(PEOPLE_BY_NAME)
    assert chosen.engine is EngineName.SPARK
    assert "Spark is used above 10 B" in chosen.why


def test_an_explanation_says_what_is_read_and_how(graph: Graph) -> None:
    told = str(
        graph.explain(
            "query q($n: String) { match { $p: Person {name: $n} $p knows $q } return { $q.age } }",
            {"n": "ada"},
        )
    )
    assert "node:Person (id, name)" in told
    assert "edge:Knows (src, dst)" in told
    assert "SELECT" in told
    assert "'ada'" not in told.partition("plan:")[2], "values never stand in the text"


@pytest.mark.parametrize(
    ("type_", "column", "values"), [("I32", "age", [36, 7, -1]), ("String", "name", ["ada", "x"])]
)
def test_a_query_is_lowered_once_for_all_values_of_its_parameter(
    graph: Graph,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
    type_: str,
    column: str,
    values: list[object],
) -> None:
    lowered = Mock(wraps=lower)
    monkeypatch.setattr("omnigraph.engine.queries.lower", lowered)
    match = f"$p: Person {{{column}: $v}}"
    text = f"query q($v: {type_}) {{ match {{ {match} }} return {{ $p.name as name }} }}"

    asked = open_graph(graph.uri, read_only=True)
    for value in values:
        answer = asked.query(text, {"v": value}, engine=engine).rows()
        assert answer == [{"name": each["name"]} for each in PEOPLE if each[column] == value]

    assert lowered.call_count == 1
