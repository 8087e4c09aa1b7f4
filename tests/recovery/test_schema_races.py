"""Schema changes race other writers: each lands whole, on the schema it was planned with."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import (
    ConflictError,
    DiagnosticsError,
    ErrorCode,
    OmnigraphError,
    TypeNotFoundError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.model.names import MAIN
from omnigraph.recovery.entries import RecoveryKind
from omnigraph.schema import codec
from omnigraph.schema.parser import parse_schema
from tests.support import crashes
from tests.support.crashes import (
    Cut,
    as_other_machine,
    at_rest,
    cut_off,
    has_sidecar,
    much_later,
    picture,
    rows_of,
    sleeping_at,
    trace,
    write_by_name,
)
from tests.support.publishing import KNOWS, PERSON, SCHEMA
from tests.support.writers import (
    DRAFT,
    RENAMED,
    RESHAPED,
    furnished,
    insert,
    knows,
    person,
    upserts,
    write,
)

WIDENED: Final = SCHEMA.replace("age: I32?", 'age: I32?  kind: String @default("old")')
"""Under this schema, the texts of writers still mean something."""

INSERT: Final = 'query q() { insert Person { name: "eva" } }'
EVA: Final[dict[str, Any]] = {"id": "eva", "name": "eva", "age": None}
PEOPLE: Final[list[dict[str, Any]]] = [
    {"id": "ada", "name": "ada", "age": 36},
    {"id": "bob", "name": "bob", "age": None},
]

_numbers = count()


def _load(graph: Graph, mode: str) -> object:
    return graph.load({"Person": [{"name": "eva"}]}, mode=mode, index=False)


WRITERS: Final[dict[str, Callable[[Graph], object]]] = {
    "insert": lambda graph: graph.mutate(INSERT),
    "update": lambda graph: graph.mutate(
        'query q() { update Person set { age: 40 } where name = "ada" }'
    ),
    "delete": lambda graph: graph.mutate('query q() { delete Person where name = "bob" }'),
    "append": partial(_load, mode="append"),
    "load": partial(_load, mode="merge"),
}
AFTERWARDS: Final[dict[str, list[dict[str, Any]]]] = {
    "insert": [*PEOPLE, EVA],
    "update": [{**PEOPLE[0], "age": 40}, PEOPLE[1]],
    "delete": PEOPLE[:1],
    "append": [*PEOPLE, EVA],
    "load": [*PEOPLE, EVA],
}

BEFORE_THE_CLAIM: Final = Cut(Failpoint.WRITE_AFTER_STAGE)
TYPICAL: Final = (
    BEFORE_THE_CLAIM,
    Cut(Failpoint.WRITE_AFTER_CHECK),
    Cut(Failpoint.WRITE_AFTER_EACH_APPLY),
    Cut(Failpoint.WRITE_AFTER_SETTLE),
)
"""Nothing claimed, nothing moved, one head moved, all over."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return furnished(str(tmp_path_factory.mktemp("base") / "graph.omni")).uri


@pytest.fixture
def place(base: str, tmp_path: Path) -> Callable[[], str]:
    return lambda: crashes.copied(base, tmp_path / f"{next(_numbers)}.omni")


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with as_other_machine(monkeypatch):
        yield


def schema_digest(schema: str) -> str:
    """The identity of a schema."""
    return codec.digest(parse_schema(schema))


def names_before(row: dict[str, Any]) -> dict[str, Any]:
    """A row by the names and columns that it had before any schema change of these tests."""
    age = row["years"] if "years" in row else row["age"]
    return {"id": row["id"], "name": row["name"], "age": age}


def race_a_change(uri: str, writer: str, cut: Cut, schema: str) -> OmnigraphError | None:
    """Let a schema change land while the writer sleeps; return the writer's error, if any.

    A change of the table that the writer has claimed considers it dead. Another need not.
    """
    graph = omnigraph.open(uri)
    reopen = omnigraph.open if schema == RENAMED else much_later
    with sleeping_at(cut, lambda: reopen(uri).schema.apply(schema)):
        try:
            WRITERS[writer](graph)
        except (ConflictError, DiagnosticsError, TypeNotFoundError) as refusal:
            return refusal
    return None


def check_outcome(uri: str, writer: str, schema: str, refusal: OmnigraphError | None) -> None:
    """Nothing is lost, and nothing is half visible."""
    expected = PEOPLE if refusal else AFTERWARDS[writer]
    rows = rows_of(uri, PERSON)
    assert [names_before(dict(row)) for row in rows] == expected
    if schema != RENAMED:
        assert {row["kind"] for row in rows} == {"old"}
    at_rest(uri, rows=True)
    assert omnigraph.open(uri).snapshot().schema_digest == schema_digest(schema)
    graph = omnigraph.open(uri)
    write(graph, {PERSON: upserts(person("last")), KNOWS: upserts(knows("last", "ada"))})
    at_rest(uri)


def cuts_of(place: Callable[[], str], writer: str) -> list[Cut]:
    return trace(lambda: WRITERS[writer](omnigraph.open(place())))


def check_race(place: Callable[[], str], writer: str, cut: Cut, schema: str) -> None:
    uri = place()
    refusal = race_a_change(uri, writer, cut, schema)
    check_outcome(uri, writer, schema, refusal)
    # A writer that is found with all heads moved is finished, and the change comes after it. A
    # deletion moves two.
    is_finished = cut == TYPICAL[2] and schema != RENAMED and writer != "delete"
    if is_finished or cut == TYPICAL[-1]:
        assert refusal is None
    elif writer == "insert" and schema != RESHAPED:
        assert refusal is None, "an insert is planned again"
    elif writer == "insert":
        # It was planned again, and the type has another name now.
        assert isinstance(refusal, DiagnosticsError)
    elif cut == BEFORE_THE_CLAIM or schema == RENAMED:
        assert refusal is not None
        assert refusal.code is ErrorCode.SCHEMA_CHANGED, cut


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_never_lands_rows_of_the_schema_before(place, writer):
    for cut in TYPICAL[:-1]:
        check_race(place, writer, cut, WIDENED)


@pytest.mark.parametrize("schema", [RESHAPED, RENAMED], ids=["same table", "other table"])
def test_a_writer_that_slept_finds_its_table_under_another_name(place, schema):
    for cut in TYPICAL:
        check_race(place, "insert", cut, schema)
    check_race(place, "update", TYPICAL[2], schema)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("schema", [WIDENED, RESHAPED, RENAMED], ids=["wide", "shape", "name"])
def test_a_writer_may_sleep_anywhere_during_a_schema_change(place, writer, schema):
    for cut in cuts_of(place, writer):
        uri = place()
        check_outcome(uri, writer, schema, race_a_change(uri, writer, cut, schema))


@pytest.mark.parametrize("cut", TYPICAL[:-1], ids=str)
def test_a_row_that_lands_during_a_schema_change_gets_its_values_too(place, cut):
    uri = place()
    graph = omnigraph.open(uri)

    with sleeping_at(cut, lambda: much_later(uri).mutate(INSERT)):
        graph.schema.apply(RESHAPED)

    kinds = {row["id"]: row["kind"] for row in rows_of(uri, PERSON)}
    assert kinds == {"ada": "old", "bob": "old", "eva": "old"}
    at_rest(uri, rows=True)


def test_of_two_equal_schema_changes_one_makes_a_commit(place):
    uri = place()
    graph = omnigraph.open(uri)
    before = len(graph.commits.list())

    with sleeping_at(BEFORE_THE_CLAIM, lambda: much_later(uri).schema.apply(RESHAPED)):
        result = graph.schema.apply(RESHAPED)

    assert result.commit_id is None
    assert len(graph.commits.list()) == before + 1
    at_rest(uri, rows=True)


@pytest.mark.parametrize("cut", TYPICAL[:-1], ids=str)
def test_a_schema_change_does_not_undo_another_one_that_landed_meanwhile(place, cut):
    # Its text is a whole schema. Planned again, it would drop what it does not know about.
    uri = place()
    graph = omnigraph.open(uri)
    before = picture(uri)

    with (
        sleeping_at(cut, lambda: much_later(uri).schema.apply(RENAMED)),
        pytest.raises(ConflictError) as refusal,
    ):
        graph.schema.apply(WIDENED)

    assert refusal.value.code is ErrorCode.SCHEMA_CHANGED
    assert "omnigraph schema plan" in refusal.value.hint
    assert picture(uri).schemas == {MAIN: schema_digest(RENAMED)}
    assert rows_of(uri, PERSON) == before.rows[MAIN, str(PERSON)]
    at_rest(uri, rows=True)


@pytest.mark.parametrize("cut", TYPICAL, ids=str)
def test_a_branch_that_is_created_during_a_schema_change_is_before_or_after_it(place, cut):
    uri = place()
    graph = omnigraph.open(uri)

    with sleeping_at(cut, lambda: omnigraph.open(uri).branches.create(DRAFT)):
        graph.schema.apply(RESHAPED)

    new, old = schema_digest(RESHAPED), schema_digest(SCHEMA)
    landed = cut == TYPICAL[-1]
    assert picture(uri).schemas == {MAIN: new, DRAFT: new if landed else old}
    insert(graph, "eva", branch=DRAFT)
    assert {row["id"] for row in rows_of(uri, PERSON)} == {"ada", "bob"}
    assert {row["id"] for row in rows_of(uri, PERSON, DRAFT)} == {"ada", "bob", "eva"}
    at_rest(uri, rows=True)


def _widen(uri: str) -> None:
    much_later(uri).schema.apply(WIDENED)


@pytest.mark.parametrize("cut", TYPICAL[:-1])
def test_a_merge_that_a_schema_change_overtakes_is_planned_again_on_the_new_schema(place, cut):
    uri = place()
    graph = omnigraph.open(uri)
    graph.branches.create(DRAFT)
    graph.mutate(INSERT, branch=DRAFT)

    with sleeping_at(cut, partial(_widen, uri)):
        graph.merge(DRAFT)

    assert [(row["id"], row["kind"]) for row in rows_of(uri, PERSON)] == [
        ("ada", "old"),
        ("bob", "old"),
        ("eva", "old"),
    ]
    at_rest(uri, rows=True)


def test_rows_that_a_merge_lands_during_a_schema_change_get_its_values_too(place):
    uri = place()
    graph = omnigraph.open(uri)
    graph.branches.create(DRAFT)
    graph.mutate(INSERT, branch=DRAFT)

    with sleeping_at(TYPICAL[1], lambda: much_later(uri).merge(DRAFT)):
        graph.schema.apply(WIDENED)

    kinds = {row["id"]: row["kind"] for row in rows_of(uri, PERSON)}
    assert kinds == {"ada": "old", "bob": "old", "eva": "old"}
    at_rest(uri, rows=True)


def test_a_recovery_that_sleeps_through_a_schema_change_finds_renamed_tables(place):
    # It restores versions of before, with their columns, and then looks again.
    uri = place()
    cut_off(Cut(Failpoint.WRITE_AFTER_CHECK), lambda: write_by_name(uri, "delete"))

    def change() -> None:
        much_later(uri).schema.apply(RESHAPED)

    with sleeping_at(Cut(Failpoint.RECOVERY_AFTER_CLASSIFY), change):
        omnigraph.open(uri)

    assert [(row["id"], row["years"]) for row in rows_of(uri, PERSON)] == [
        ("ada", 36),
        ("bob", None),
    ]
    at_rest(uri, rows=True)


def test_a_recovery_that_slept_through_a_schema_change_spoils_nothing(place):
    # It restores versions of before, with their columns, and dies before it looks again.
    uri = place()
    cut_off(Cut(Failpoint.WRITE_AFTER_CHECK), lambda: write_by_name(uri, "delete"))
    with (
        sleeping_at(
            Cut(Failpoint.RECOVERY_AFTER_CLASSIFY), lambda: much_later(uri).schema.apply(RESHAPED)
        ),
        arm(Failpoint.RECOVERY_AFTER_EACH_RESTORE, after_hits=2),
        pytest.raises(SimulatedCrash),
    ):
        omnigraph.open(uri)
    assert not has_sidecar(uri)

    graph = omnigraph.open(uri)
    write(graph, {PERSON: upserts(person("eva")), KNOWS: upserts(knows("eva", "ada"))})

    assert [(row["id"], row["years"], row["kind"]) for row in rows_of(uri, PERSON)] == [
        ("ada", 36, "old"),
        ("bob", None, "old"),
        ("eva", None, "new"),
    ]
    kinds = [entry.kind for entry in at_rest(uri, rows=True).recoveries]
    assert kinds == [RecoveryKind.ROLLED_BACK, RecoveryKind.STRAY_RESTORE_UNDONE]
