"""Hostile texts are data or are refused: they never become part of a plan."""

from pathlib import Path

import pytest

from omnigraph.errors import InvalidInputError, NotFoundError
from omnigraph.graph import Graph
from omnigraph.graph import init as init_graph
from omnigraph.lang.spelling import quote
from tests.support.graphs import graph_with

HOSTILE = {
    "single quote": "it's",
    "double quote": 'say "hi"',
    "closed quote": "'; DROP TABLE r0; --",
    "backtick": "`id`",
    "semicolon": "a; b",
    "line comment": "a -- b",
    "block comment": "a /* b */ c",
    "hash": "# a",
    "backslash": "a\\",
    "escaped quote": "\\'",
    "placeholder": "$p0 :p0 ? {0} %s",
    "wildcards": "50%_",
    "NUL": "a\0b",
    "newline": "a\nb\r\tc",
    "emoji": "👩‍👩‍👧 né",
    "quote of another kind": "a’b´c",  # noqa: RUF001  # that it looks alike is the point
    "dollar quote": "$$ body $$",
    "empty": "",
    "a megabyte": "x'\"" * 350_000,
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """One node for each hostile text, which is its key, too."""
    where: Path = tmp_path_factory.mktemp("hostile") / 'it\'s a "graph"; --'
    rows = [{"name": text, "label": label} for label, text in HOSTILE.items()]
    schema = "node Text { name: String @key  label: String }"
    return graph_with(where, schema, {"Text": rows})


@pytest.mark.parametrize("label", HOSTILE)
def test_a_hostile_parameter_is_data(texts: Graph, engine: str, label: str) -> None:
    query = """query found($text: String) {
        match { $t: Text  $t.name = $text  $t.name contains $text  $t.name starts_with $text }
        return { $t.label, $t.name }
    }"""
    found = texts.query(query, {"text": HOSTILE[label]}, engine=engine).rows()
    assert found == [{"t.label": label, "t.name": HOSTILE[label]}]


@pytest.mark.parametrize("label", [label for label in HOSTILE if label != "a megabyte"])
def test_a_hostile_literal_is_data_or_refused(texts: Graph, engine: str, label: str) -> None:
    literal = quote(HOSTILE[label])
    query = f"query q() {{ match {{ $t: Text {{name: {literal}}} }} return {{ $t.label }} }}"
    found = texts.query(query, engine=engine).rows()
    assert found == [{"t.label": label}]


def test_a_megabyte_of_literal_is_refused_with_the_limit(texts: Graph) -> None:
    literal = quote(HOSTILE["a megabyte"])
    query = f"query q() {{ match {{ $t: Text {{name: {literal}}} }} return {{ $t.label }} }}"
    with pytest.raises(InvalidInputError, match=r"1,048,576|1048576|too long|at most"):
        texts.query(query)


IN_NAMES = [
    label
    for label in HOSTILE
    # Comments and white space are no part of a name, and a quoted text after one is a new column.
    if label not in {"empty", "newline", "block comment", "line comment", "double quote"}
]


@pytest.mark.parametrize("label", IN_NAMES)
def test_a_hostile_name_in_a_query_is_refused(texts: Graph, label: str) -> None:
    text = HOSTILE[label]
    for query in (
        f"query q() {{ match {{ $t: Text{text} }} return {{ $t.label }} }}",
        f"query q() {{ match {{ $t: Text {{lab{text}el: 1}} }} return {{ $t.label }} }}",
        f"query q() {{ match {{ $t: Text }} return {{ $t.label as {text} }} }}",
    ):
        with pytest.raises(InvalidInputError):
            texts.query(query)


@pytest.mark.parametrize("label", IN_NAMES)
def test_a_hostile_name_in_a_schema_is_refused(tmp_path: Path, label: str) -> None:
    text = HOSTILE[label]
    for schema in (f"node T{text} {{ x: String }}", f"node T {{ x{text}: String }}"):
        with pytest.raises(InvalidInputError):
            init_graph(tmp_path / "graph.omni", schema)
    assert not (tmp_path / "graph.omni").exists()


@pytest.mark.parametrize("label", [label for label in HOSTILE if label != "a megabyte"])
def test_a_hostile_branch_or_commit_is_refused(texts: Graph, label: str) -> None:
    query = "query q() { match { $t: Text } return { $t.label } }"
    with pytest.raises((InvalidInputError, NotFoundError)):
        texts.query(query, branch=f"b{HOSTILE[label]}")
    with pytest.raises((InvalidInputError, NotFoundError)):
        texts.query(query, commit=HOSTILE[label])
