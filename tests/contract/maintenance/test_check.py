"""A check names every kind of fault, calls nothing sound wrong, and writes nothing."""

import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import (
    BranchNotFoundError,
    ErrorCode,
    GraphNotFoundError,
    InvalidInputError,
    InvalidParameterError,
    StorageError,
)
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.checking.foreign import is_foreign
from omnigraph.maintenance.checking.report import CheckReport, Finding, Invariant
from omnigraph.manifest.layout import BRANCHES, RECOVERY, SCHEMA_TEXT, SCHEMAS
from omnigraph.model.names import MAIN
from omnigraph.recovery.scratch import SCRATCH
from tests.support.crashes import copied, upload_graph
from tests.support.faults import FAULTS, sound_graph
from tests.support.graphs import add_rows, graph_with
from tests.support.publishing import CITY
from tests.support.writers import DRAFT, insert

RULES = """
node Person {
  name: String @key
  email: String?
  age: I32?
  status: enum(active, away)?
  photo: Blob?
  face: Vector(2)?
  tags: [String]?
  @unique(email)
  @range(age, 0..150)
  @check(email, "@")
  @length(tags, ..1)
}
node City { name: String @key  people: U64? }
edge LivesIn: Person -> City @card(1..1) { since: Date?  @key(src, dst) }
"""
WHOLE = {
    "Person": [
        {"name": "ada", "email": "a@x", "age": 36, "photo": b"1", "face": [0.0, 1.0], "tags": []},
        {"name": "bob", "status": "away"},
    ],
    "City": [{"name": "rome", "people": 3}],
    "LivesIn": [{"src": "ada", "dst": "rome"}, {"src": "bob", "dst": "rome"}],
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sound_graph(str(tmp_path_factory.mktemp("base") / "graph.omni")).uri


@pytest.fixture
def graph(base: str, tmp_path: Path) -> Graph:
    return omnigraph.open(copied(base, tmp_path / "graph.omni"))


def files(uri: str) -> dict[str, tuple[int, int]]:
    """Every file of a graph, with its size and when it was written."""
    found = (each for each in Path(uri).rglob("*") if each.is_file())
    return {str(each): (each.stat().st_size, each.stat().st_mtime_ns) for each in found}


def told(finding: Finding) -> str:
    return " ".join([finding.subject, finding.place, finding.problem, finding.next_step])


def says(finding: Finding, words: str) -> bool:
    """Whether the words stand in a finding, in their order."""
    at = 0
    text = told(finding)
    for word in words.split():
        at = text.find(word, at)
        if at < 0:
            return False
    return True


def test_a_sound_graph_is_called_sound_and_counted(graph):
    report = graph.check()

    assert (report.findings, report.notes) == ((), ())
    assert report.is_sound
    assert report.branches == (MAIN, DRAFT)
    assert report.checked == {
        Invariant.BRANCH: 2,
        Invariant.HISTORY: 4 + 3,
        Invariant.SCHEMA: 1,
        Invariant.TABLE: 6,
        Invariant.INDEX: 0,
        # The branch owns one table, and reads main's others.
        Invariant.HEAD: 4,
        # What both read is read once: the people of each, and the city and the edge of both.
        Invariant.ROW: 4 + 3 + 1 + 1,
        Invariant.RULE: report.checked[Invariant.RULE],
        Invariant.SIDECAR: 0,
        Invariant.RECOVERY: 1,
        Invariant.TAG: 0,
        Invariant.SETTING: 18,
    }
    assert report.checked[Invariant.RULE] > 0


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_place_and_the_next_step(graph, name):
    fault = FAULTS[name]
    fault.plant(graph)
    planted = files(graph.uri)

    report = graph.check(rows=fault.invariant in (Invariant.TABLE, Invariant.RULE), history=True)

    about = [each for each in report.findings if each.invariant is fault.invariant]
    assert any(says(each, fault.says) for each in about), report.findings
    assert all(each.place and each.next_step for each in report.findings)
    assert not report.is_sound
    assert files(graph.uri) == planted, "a check writes nothing"


def test_without_rows_all_but_rows_is_checked(graph):
    FAULTS["an id twice"].plant(graph)
    FAULTS["a dropped commit"].plant(graph)

    report = graph.check(rows=False)

    assert {each.invariant for each in report.findings} == {Invariant.HISTORY}
    unasked = set(Invariant) - report.checked.keys()
    assert unasked == {Invariant.ROW, Invariant.RULE, Invariant.PAST}


@pytest.mark.parametrize("name", [each for each in FAULTS if each.endswith("of the past")])
def test_the_past_is_looked_at_only_when_asked_for(graph, name):
    FAULTS[name].plant(graph)
    assert graph.check().is_sound
    assert not graph.check(rows=False, history=True).is_sound


def test_a_lost_file_is_missed_without_reading_rows(graph):
    FAULTS["a lost data file"].plant(graph)
    report = graph.check(rows=False)
    assert [each for each in report.findings if says(each, "node:Person is not there")]


def test_every_version_that_a_commit_reads_is_opened_once(graph):
    commits = {each.commit_id for name in (MAIN, DRAFT) for each in graph.commits.list(branch=name)}
    pins = {pin for each in commits for pin in graph.snapshot(commit=each).pins.values()}
    shared = {*graph.snapshot().pins.values()} & {*graph.snapshot(branch=DRAFT).pins.values()}

    report = graph.check(history=True)

    assert report.is_sound
    assert report.checked[Invariant.PAST] == len(commits)
    # What both tips pin is told of each of them.
    assert report.checked[Invariant.TABLE] == len(pins) + len(shared)


def test_the_past_of_a_branch_that_went_is_not_missed(graph):
    graph.merge(DRAFT, delete_branch=True)
    assert graph.check(history=True).is_sound


def test_one_branch_may_be_checked_alone(graph):
    FAULTS["an id twice"].plant(graph)

    assert graph.check(branch=DRAFT).is_sound
    assert not graph.check(branch=MAIN).is_sound
    with pytest.raises(BranchNotFoundError, match="did you mean draft"):
        graph.check(branch="draught")


def test_what_is_wrong_with_who_looks_is_not_wrong_with_the_graph(graph, monkeypatch):
    with pytest.raises(InvalidParameterError, match="'x' is not a valid engine"):
        graph.check(engine="x")
    # Another test of this process may have started Spark already.
    monkeypatch.setattr("omnigraph.engine.spark.session._running_session", lambda: None)
    monkeypatch.setattr("omnigraph.engine.spark.session._own_gateways", [])
    monkeypatch.setattr("omnigraph.engine.spark.java.find_java", lambda: None)
    with pytest.raises(InvalidInputError, match="needs Java"):
        graph.check(engine="spark")


def test_what_may_not_be_read_is_not_called_wrong(graph, monkeypatch):
    def deny(*_: object, **__: object) -> None:
        message = "reading was denied"
        raise StorageError(message, code=ErrorCode.STORAGE_DENIED)

    monkeypatch.setattr("omnigraph.storage.tables.Table.count_rows", deny)
    with pytest.raises(StorageError, match="denied"):
        graph.check()


def test_where_there_is_no_graph_there_is_nothing_to_check(tmp_path):
    handle = omnigraph.init(tmp_path / "one", "node A { x: I32 }")
    Path(handle.uri).rename(tmp_path / "other")
    with pytest.raises(GraphNotFoundError):
        handle.check()


def test_leftovers_and_writes_in_flight_are_notes(graph):
    pin = graph.snapshot().pin(CITY)
    fork = f"{graph.snapshot(branch=DRAFT).ref}/{graph._clock.ulid()}"
    graph._store.refs.start(pin.location, fork, source=None, version=pin.version)
    Path(graph.uri, SCHEMA_TEXT).unlink()

    with_leftovers = graph.check()

    assert with_leftovers.is_sound
    assert {each.subject for each in with_leftovers.notes} == {f"ref {fork}", SCHEMA_TEXT}


FOREIGN_FILES = {
    "a text among the branches": f"{BRANCHES}/notes.txt",
    "a text among the sidecars": f"{RECOVERY}/notes.txt",
    "a copy of a sidecar": f"{RECOVERY}/01ARZ3NDEKTSV4RRFFQ69G5FAV copy.json",
    "a file of the Finder": f"{RECOVERY}/.DS_Store",
    "a sidecar in a folder": f"{RECOVERY}/old/01ARZ3NDEKTSV4RRFFQ69G5FAV.json",
    "a text among the schemas": f"{SCHEMAS}/schema.pg",
    "a text among the scratch": f"{SCRATCH}/notes.txt",
    "a file named like a load": f"{SCRATCH}/01ARZ3NDEKTSV4RRFFQ69G5FAV",
}


@pytest.mark.parametrize("path", FOREIGN_FILES.values(), ids=FOREIGN_FILES.keys())
def test_a_foreign_file_in_a_folder_of_the_graph_is_a_note(graph, path):
    graph._store.objects.put(path, b"mine")

    report = graph.check()

    assert report.is_sound
    assert [each.place for each in report.notes] == [path]


@pytest.mark.parametrize("path", ["draft.json", "review=1.json", "review/1.json"])
def test_names_of_branches_are_no_foreign_files_in_either_spelling(path):
    assert not is_foreign(f"{BRANCHES}/{path}")


@pytest.mark.parametrize("path", ["draft.txt", ".hidden.json", "a b.json", "main.json", "=x.json"])
def test_what_no_branch_can_be_named_is_a_foreign_file(path):
    assert is_foreign(f"{BRANCHES}/{path}")


def test_a_head_that_a_write_in_flight_moved_is_a_note(graph):
    seen: list[CheckReport] = []

    def look() -> None:
        seen.append(graph.check())

    from omnigraph.failpoints import arm

    with arm(Failpoint.WRITE_AFTER_EACH_APPLY, look):
        insert(graph, "zoe")

    [report] = seen
    assert report.is_sound
    assert {each.invariant for each in report.notes} == {Invariant.HEAD, Invariant.SIDECAR}
    assert graph.check().notes == ()


def test_a_graph_in_an_object_store_is_checked_alike(base, s3_bucket):
    uri = upload_graph(base, f"s3://{s3_bucket}/graph.omni")
    report = omnigraph.open(uri, read_only=True).check(history=True)
    assert (report.findings, report.notes) == ((), ())


def test_a_comment_in_the_schema_text_changes_nothing(graph):
    path = Path(graph.uri, SCHEMA_TEXT)
    path.write_text(f"// people, mostly\n{path.read_text()}")
    assert graph.check().is_sound


def test_a_check_beside_writers_finds_nothing_wrong(graph):
    done = threading.Event()

    def keep_writing() -> None:
        writer = omnigraph.open(graph.uri)
        number = 0
        while not done.is_set():
            number += 1
            insert(writer, f"person {number}")
            insert(writer, f"person {number}", branch=DRAFT)

    thread = threading.Thread(target=keep_writing)
    thread.start()
    try:
        reports = [graph.check(rows=False, history=True) for _ in range(15)]
    finally:
        done.set()
        thread.join()
    assert [each.findings for each in reports if not each.is_sound] == []


def test_an_index_of_which_no_row_is_left_is_sound(graph):
    graph.ensure_indices()
    graph.mutate('query q() { delete City where name = "rome" }')
    graph.load({"City": [{"name": "oslo"}]}, index=False)

    assert graph.check().findings == ()


BREACHES = {
    "range Person(age)": ("Person", {"name": "old", "age": 151}),
    "length Person(tags)": ("Person", {"name": "long", "tags": ["a", "b"]}),
    "check Person(email)": ("Person", {"name": "odd", "email": "nowhere"}),
    "enum Person(status)": ("Person", {"name": "gone", "status": "gone"}),
    "unique Person(email)": ("Person", {"name": "twin", "email": "a@x"}),
    "type Person(face)": ("Person", {"name": "flat", "face": [float("nan"), 0.0]}),
    "unique City(name)": ("City", {"id": "roma", "name": "rome"}),
    "endpoint LivesIn(src)": ("LivesIn", {"src": "nobody", "dst": "rome"}),
    "cardinality LivesIn(src)": ("LivesIn", {"src": "ada", "dst": "rome", "id": "again"}),
}


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return graph_with(tmp_path_factory.mktemp("ruled") / "graph.omni", RULES, WHOLE).uri


@pytest.mark.parametrize("breach", BREACHES)
def test_every_rule_of_the_schema_is_asked_of_committed_rows(ruled, tmp_path, breach):
    graph = omnigraph.open(copied(ruled, tmp_path / "graph.omni"))
    assert graph.check().findings == ()
    type_name, row = BREACHES[breach]
    add_rows(graph, {type_name: [row]})

    assert breach in {each.subject for each in graph.check().findings}


def test_rows_are_looked_at_a_batch_at_a_time(ruled, tmp_path, monkeypatch):
    graph = omnigraph.open(copied(ruled, tmp_path / "graph.omni"))
    many = [{"name": f"p{each}", "age": 200} for each in range(500)]
    add_rows(graph, {"Person": many})
    monkeypatch.setattr("omnigraph.maintenance.checking.rules._BATCH_BYTES", 1 << 12)

    report = graph.check()

    [found] = [each for each in report.findings if each.subject == "range Person(age)"]
    assert found.count == 500
    assert "and 497 more" in found.problem
    assert report.checked[Invariant.ROW] == 502 + 1 + 2


@pytest.mark.usefixtures("spark")
def test_spark_finds_the_same(ruled, tmp_path):
    graph = omnigraph.open(copied(ruled, tmp_path / "graph.omni"))
    add_rows(graph, {"Person": [BREACHES["unique Person(email)"][1]]})
    add_rows(graph, {"LivesIn": [BREACHES["endpoint LivesIn(src)"][1]]})

    assert graph.check(engine="spark").findings == graph.check(engine="local").findings != ()
