"""What Python programs meet first: places, arguments, names and errors, right and wrong."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchNotFoundError, InvalidParameterError
from tests.support.asked import PEOPLE, SCHEMA
from tests.support.graphs import graph_with


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return graph_with(
        tmp_path_factory.mktemp("asked") / "graph.omni",
        SCHEMA,
        {"Person": PEOPLE, "City": [{"name": "Oslo"}]},
    )


@pytest.mark.parametrize("place", [None, 3, b"graph.omni"])
def test_a_graph_is_made_and_opened_at_a_text_or_a_path_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameterError, match="the graph's place"):
        omnigraph.init(place, SCHEMA)
    with pytest.raises(InvalidParameterError, match="the graph's place"):
        omnigraph.open(place)
    assert list(tmp_path.iterdir()) == []


class Place:
    """A path that is none of pathlib's."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __fspath__(self) -> str:
        return self.text


def test_every_spelling_of_a_directory_names_one_graph(tmp_path: Path) -> None:
    made = omnigraph.init(f"file:{tmp_path}/graph.omni", SCHEMA)
    assert made.uri == f"{tmp_path}/graph.omni"
    assert omnigraph.open(Place(made.uri)).uri == made.uri


@pytest.mark.parametrize("branch", ["main", "new"])
def test_a_load_starts_at_a_branch_that_exists_or_not_at_all(graph: Graph, branch: str) -> None:
    before = graph.commits.every()
    rows = {"City": [{"name": "Rome"}]}
    with pytest.raises(BranchNotFoundError, match="no branch mian") as refused:
        graph.load(rows, branch=branch, start="mian")
    assert "main" in refused.value.hint
    assert graph.branches.list() == ("main",)
    assert graph.commits.every() == before


def test_a_start_without_a_branch_to_make_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidParameterError, match="give both"):
        graph.load({"City": [{"name": "Rome"}]}, start="main")
