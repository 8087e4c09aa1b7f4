"""Init is killed everywhere: afterwards the root is a graph, or can become one."""

import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    GraphNotFoundError,
    OmnigraphError,
    StorageError,
    TableConflictError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.manifest.layout import SCHEMA_TEXT
from tests.support.concurrency import in_processes
from tests.support.crashes import Cut, put_to_death
from tests.support.publishing import CITY, KNOWS, PERSON, SCHEMA

POINTS = [point for point in Failpoint if point.startswith("init.")]
OTHER_SCHEMA = "node Robot { serial: I64 @key }"


@pytest.fixture(params=["local", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "graph.omni")
    return f"s3://{request.getfixturevalue('s3_bucket')}/graph.omni"


def is_initialised(uri: str) -> bool:
    try:
        omnigraph.open(uri, read_only=True)
    except GraphNotFoundError:
        return False
    return True


def assert_whole(graph: omnigraph.Graph) -> None:
    """The graph has its types, empty, and one commit without a parent."""
    snapshot = graph.snapshot()
    assert list(snapshot.pins) == [CITY, PERSON, KNOWS]
    assert {pin.row_count for pin in snapshot.pins.values()} == {0}
    (only,) = graph.commits.list()
    assert only.parent is None


@pytest.mark.parametrize("point", POINTS)
def test_a_crashed_init_leaves_a_graph_or_a_place_for_one(uri: str, point: Failpoint) -> None:
    with arm(point), pytest.raises(SimulatedCrash):
        omnigraph.init(uri, SCHEMA)

    published = point in (Failpoint.INIT_AFTER_MANIFEST, Failpoint.INIT_AFTER_SCHEMA_TEXT)
    assert is_initialised(uri) is published
    if published:
        with pytest.raises(AlreadyExistsError):
            omnigraph.init(uri, OTHER_SCHEMA)
        assert_whole(omnigraph.open(uri))
    else:
        assert_whole(omnigraph.init(uri, SCHEMA))


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_init_leaves_a_graph_or_a_place_for_one(tmp_path: Path, point: Failpoint) -> None:
    uri = str(tmp_path / "graph.omni")
    put_to_death(Cut(point), omnigraph.init, uri, SCHEMA)

    # Another schema than the killed one's: nothing of that may shine through.
    if not is_initialised(uri):
        robots = omnigraph.init(uri, OTHER_SCHEMA)
        assert [str(key) for key in robots.snapshot().pins] == ["node:Robot"]
        assert Path(uri, SCHEMA_TEXT).read_text() == OTHER_SCHEMA
    else:
        assert_whole(omnigraph.open(uri))


def test_the_schema_text_is_there_after_a_read_write_open(uri: str) -> None:
    with arm(Failpoint.INIT_AFTER_MANIFEST), pytest.raises(SimulatedCrash):
        omnigraph.init(uri, f"// kept, comments too\n{SCHEMA}")

    graph = omnigraph.open(uri)

    stored = graph._store.objects.read(SCHEMA_TEXT)
    assert stored is not None
    assert stored.data.decode().startswith("// kept, comments too")


def test_a_read_only_open_after_a_crash_writes_nothing(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph.omni")
    with arm(Failpoint.INIT_AFTER_MANIFEST), pytest.raises(SimulatedCrash):
        omnigraph.init(uri, SCHEMA)
    before = sorted(tmp_path.rglob("*"))

    assert_whole(omnigraph.open(uri, read_only=True))

    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("said", [StorageError, TableConflictError])
def test_a_lost_answer_to_init_is_recognised(uri: str, said: type[OmnigraphError]) -> None:
    def lose_the_answer() -> None:
        message = "the connection broke after the request was sent"
        raise said(message)

    with arm(Failpoint.INIT_AFTER_MANIFEST, lose_the_answer):
        graph = omnigraph.init(uri, SCHEMA)

    assert_whole(graph)


def _init(barrier: threading.Barrier, uri: str, schema: str) -> str:
    barrier.wait(60)
    try:
        graph = omnigraph.init(uri, schema)
    except AlreadyExistsError as refused:
        return refused.code.value
    return str(next(iter(graph.snapshot().pins)))


def test_of_two_inits_at_once_one_wins_and_its_schema_stays(uri: str) -> None:
    wanted = [(uri, OTHER_SCHEMA), (uri, SCHEMA)]
    answers = in_processes(_init, wanted)

    (winner,) = [each for each in answers if each != ErrorCode.GRAPH_EXISTS]
    graph = omnigraph.open(uri)
    assert str(next(iter(graph.snapshot().pins))) == winner
    stored = graph._store.objects.read(SCHEMA_TEXT)
    assert stored is not None
    assert stored.data.decode() == wanted[answers.index(winner)][1]
