"""The benchmarks run, and what they time is right."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest
from lance.query import MatchQuery

from benchmarks import (
    documents,
    forum,
    forum_questions,
    inputs,
    patterns,
    people,
    query,
    report,
    social,
    start,
    upserts,
)
from benchmarks.questions import QUESTIONS
from benchmarks.rounds import UnableError, comparable
from omnigraph import graph


def test_ours_and_hand_written_sql_agree_on_all_nine_questions(tmp_path):
    made = social.write_graph(tmp_path / "graph", social.generate(social.Size(2_000)))
    askers = query.local(made)
    for number, question in QUESTIONS.items():
        answers = [comparable(ask(number, question)[1]) for ask in askers.values()]
        assert answers[0], question.title
        assert answers[0] == answers[1], question.title


def test_ours_and_sql_on_integers_agree_on_all_patterns(tmp_path):
    numbers = forum.generate(forum.Size(500))
    made = social.write_graph(tmp_path / "graph", forum.typed(numbers), schema=forum.SCHEMA)
    askers = patterns.local(made, numbers)
    for number, question in forum_questions.QUESTIONS.items():
        answers = [comparable(ask(number, question)[1]) for ask in askers.values()]
        assert answers[0] not in ([], [(0.0,)]), question.title
        assert answers[0] == answers[1], question.title


def test_the_same_seed_makes_the_same_graph():
    size = social.Size(200)
    assert social.generate(size) == social.generate(size)
    assert forum.generate(forum.Size(200)) == forum.generate(forum.Size(200))


def test_both_forms_of_an_input_load_as_the_same_rows(tmp_path):
    size = inputs.Size(1_000)
    found = []
    for make in (inputs.ndjson, inputs.parquet):
        made = graph.init(tmp_path / make.__name__, inputs.SCHEMA)
        made.load(make(size, tmp_path / "inputs"), engine="local", index=False)
        rows = {name: social.pinned(made, name).to_table() for name in inputs.TYPES}
        assert {name: len(each) for name, each in rows.items()} == {
            name: size.count(name) for name in inputs.TYPES
        }
        # The ids of edges are minted anew by each load.
        found.append({name: rows[name].drop_columns(["id"]) for name in rows})
    assert found[0] == found[1]


def test_an_upsert_brings_a_tenth_and_half_of_it_is_new(tmp_path):
    files = inputs.upsert(1_000, tmp_path / "inputs")
    made = graph.init(tmp_path / "graph", inputs.SCHEMA)
    made.load(files / "base", engine="local", index=False)
    for way in (upserts.ours, upserts.bare):
        options = {"engine": "local"} if way is upserts.ours else {}
        _, rows = way(tmp_path / "graph", files, tmp_path / "copy", **options)()
        assert rows == [(1_050,)]


def test_a_settled_graph_has_every_person_once_and_an_edge_to_the_next(tmp_path):
    made = graph.init(tmp_path / "graph", people.SCHEMA)
    people.settle(made, [f"p{number}" for number in range(people.STATEMENTS_PER_QUERY + 3)])
    assert people.ours(made, people.fresh_names()).count() == people.STATEMENTS_PER_QUERY + 3
    edges = "query q() { match { $a: Person  $a knows $b } return { count($b) as edges } }"
    assert made.query(edges).rows() == [{"edges": people.STATEMENTS_PER_QUERY + 2}]


def test_the_right_documents_are_those_that_lance_finds_and_no_others(tmp_path):
    docs = documents.Documents(documents.Size(600, 16), queries=3)
    table = lance.write_dataset(docs.table(), tmp_path / "doc.lance")
    table.create_scalar_index("body", "INVERTED")
    for asked in docs.queries:
        near = {"column": "vector", "q": asked.vector, "k": 10, "metric": "cosine"}
        searches: list[tuple[dict[str, Any], np.ndarray]] = [
            ({"full_text_query": MatchQuery(asked.text, "body"), "limit": 10}, docs.bm25(asked)),
            ({"nearest": near}, -docs.distances(asked)),
        ]
        for search, scores in searches:
            found = table.to_table(["number"], **search)["number"].to_pylist()
            assert documents.share_found(found, scores) == 1
            others = (number for number in range(600) if number not in found)
            assert documents.share_found([*found[: len(found) // 2], *others][:10], scores) < 0.8


def test_fused_scores_count_ranks_and_ties_go_by_id():
    words = np.array([-np.inf, 2, 2, 1])
    near = np.array([-3.0, -1, -2, -4])
    assert documents.fuse([words, near]).tolist() == [
        1 / 63,
        1 / 61 + 1 / 61,
        1 / 62 + 1 / 62,
        1 / 63 + 1 / 64,
    ]


def test_a_section_of_the_results_takes_its_predecessors_place_and_no_other(tmp_path):
    path = tmp_path / "RESULTS.md"
    for title, text in [("Query", "old"), ("Write", "kept"), ("Query", "### Part\n\nnew")]:
        report.write_section(title, text, path)
    _, _, sections = path.read_text().partition("\n## ")
    assert sections == "Query\n\n### Part\n\nnew\n\n## Write\n\nkept\n"


@pytest.mark.soak
def test_a_start_is_that_of_a_command_that_answers(tmp_path):
    told = start.run(1, tmp_path, warm_ups=1)
    assert "the help takes" in told
    assert "query by key takes" in told
    assert "branch merge takes" in told
    with pytest.raises(UnableError, match="exit code 2"):
        start.process(start.omnigraph("qurey"))()
    with pytest.raises(UnableError, match="exit code 0"):
        start.process(start.omnigraph("--help"), prints="something else")()


# One of them at the gate shows that their frame works; what they measure is tested elsewhere.
@pytest.mark.parametrize(
    ("program", "options", "line"),
    [
        ("write", [], "delete a node and its edges"),
        *(
            pytest.param(*program, marks=pytest.mark.soak)
            for program in [
                ("query", [], "9. paths of two hops, by the ages on the way"),
                ("load", ["--no-spark"], "ours, Parquet, and indexes"),
                ("merge", [], "ours, left in columns"),
                ("schema", ["--no-spark"], "DuckDB, ALTER TABLE"),
                ("maintenance", ["--no-spark"], "Lance, compact_files"),
                ("search", [], "rrf of bm25 and nearest"),
                ("algorithms", ["--no-spark"], "components"),
            ]
        ),
    ],
)
def test_the_programs_run_without_peers(program, options, line, tmp_path):
    if program in ("load", "merge", "schema"):
        options = [*options, "--inputs", str(tmp_path)]
    if program != "schema":
        options = [*options, "--no-peers"]
    command = [sys.executable, "-m", f"benchmarks.{program}", "--quick", *options]
    root = Path(query.__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert line in done.stdout
    assert "wrong answer" not in done.stdout
