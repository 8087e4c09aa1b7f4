"""Faults to plant in a sound graph, one kind each, as disks, bugs and manual edits cause them."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import lance
import pyarrow as pa

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.checking.report import Invariant
from omnigraph.manifest.drafts import AddHistory, CommitDraft, PinTable
from omnigraph.manifest.layout import BRANCHES, MANIFEST, RECOVERIES, RECOVERY, SCHEMA_TEXT, SCHEMAS
from omnigraph.manifest.publisher import publish
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TablePin
from omnigraph.recovery.intents import Intent, TableIntent
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage import heads, staging
from omnigraph.storage.tables import REF_FOLDER
from tests.support.crashes import Cut, cut_off
from tests.support.graphs import add_rows
from tests.support.publishing import PERSON
from tests.support.writers import DRAFT, furnished, insert, person

_clock = SystemClock()


def sound_graph(uri: str) -> Graph:
    """A sound graph with a few commits, a branch with its own commit, and a recovery."""
    graph = furnished(uri)
    graph.branches.create(DRAFT)
    insert(graph, "eva", branch=DRAFT)
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), lambda: insert(graph, "leo"))
    omnigraph.open(uri)
    insert(graph, "kim")
    return graph


@dataclass(frozen=True, slots=True)
class Fault:
    """How to plant a fault, and what a check must report.

    Attributes:
        says: Words of the finding, its subject and place among them.
    """

    plant: Callable[[Graph], object]
    invariant: Invariant
    says: str


def _table_folder(graph: Graph) -> Path:
    return Path(graph.uri, graph.snapshot().pin(PERSON).location)


def _lose_a_data_file(graph: Graph) -> None:
    for path in (_table_folder(graph) / "data").glob("*.lance"):
        path.unlink()


def _garble_a_data_file(graph: Graph) -> None:
    for path in (_table_folder(graph) / "data").glob("*.lance"):
        path.write_bytes(b"rubbish" * 200)


def _lose_a_version(graph: Graph) -> None:
    for path in (_table_folder(graph) / "_versions").iterdir():
        path.unlink()


def _lose_an_old_version(graph: Graph) -> None:
    _old(_table_folder(graph)).unlink()


def _lose_an_old_data_file(graph: Graph) -> None:
    """Lose a file whose only row has been deleted."""
    before = _data_paths(graph)
    graph.mutate('query q() { delete Person where name = "kim" }')
    [gone] = before - _data_paths(graph)
    Path(graph.uri, gone).unlink()


def _data_paths(graph: Graph) -> set[str]:
    pin = graph.snapshot().pin(PERSON)
    return set(graph._store.tables.open(pin.location, ref=None, version=pin.version).data_paths())


def _lose_an_old_manifest(graph: Graph) -> None:
    _old(Path(graph.uri, MANIFEST)).unlink()


def _old(table: Path) -> Path:
    """The file of a version that is not the newest of a table: Lance numbers them downwards."""
    return sorted((table / "_versions").glob("*.manifest"))[1]


def _lose_a_table(graph: Graph) -> None:
    _table_folder(graph).rename(_table_folder(graph).with_name("elsewhere"))


def _pin(graph: Graph, pin: TablePin) -> None:
    commit_id = CommitId(_clock.ulid())
    publish(
        graph._manifest,
        _clock,
        CommitDraft(MAIN, commit_id, OperationKind.LOAD, changes=(PinTable(pin),)),
    )


def _pin_a_missing_version(graph: Graph) -> None:
    pin = graph.snapshot().pin(PERSON)
    _pin(graph, replace(pin, version=pin.version + 7))


def _pin_an_old_version(graph: Graph) -> None:
    pin = graph.snapshot().pin(PERSON)
    before = graph._store.tables.open(pin.location, ref=None, version=pin.version - 1)
    _pin(graph, replace(pin, version=pin.version - 1, row_count=before.count_rows()))


def _count_rows_wrongly(graph: Graph) -> None:
    _pin(graph, replace(graph.snapshot().pin(PERSON), row_count=99))


def _manifest(graph: Graph) -> lance.LanceDataset:
    return lance.dataset(f"{graph.uri}/{MANIFEST}")


def _drop_a_commit(graph: Graph) -> None:
    _manifest(graph).delete(f"object_id = '{graph.commits.list()[1].commit_id}'")


def _drop_the_head_commit(graph: Graph) -> None:
    _manifest(graph).delete(f"object_id = '{graph.snapshot().head.commit_id}'")


def _drop_a_pin(graph: Graph) -> None:
    _manifest(graph).delete(f"table_key = '{PERSON}'")


def _bring_in_commits(graph: Graph, *commits: Commit) -> None:
    head = CommitId(_clock.ulid())
    publish(
        graph._manifest,
        _clock,
        CommitDraft(MAIN, head, OperationKind.MERGE, changes=(AddHistory(commits),)),
    )


def _have_two_first_commits(graph: Graph) -> None:
    _bring_in_commits(graph, replace(graph.snapshot().head, commit_id=_new_id(), parent=None))


def _have_a_commit_twice(graph: Graph) -> None:
    _bring_in_commits(graph, graph.commits.list()[2])


def _new_id() -> CommitId:
    return CommitId(_clock.ulid())


def _lose_the_schema(graph: Graph) -> None:
    Path(graph.uri, SCHEMAS, f"{graph.snapshot().schema_digest}.json").unlink()


def _edit_the_kept_schema(graph: Graph) -> None:
    path = Path(graph.uri, SCHEMAS, f"{graph.snapshot().schema_digest}.json")
    path.write_text(path.read_text().replace("age: I32?", "age: I64?"))


def _edit_the_schema_text(graph: Graph) -> None:
    path = Path(graph.uri, SCHEMA_TEXT)
    path.write_text(path.read_text().replace("age: I32?", "age: I64?"))


def _add_a_column(graph: Graph) -> None:
    table = lance.dataset(str(_table_folder(graph)))
    table.add_columns({"nickname": "name"})
    _pin(graph, replace(graph.snapshot().pin(PERSON), version=table.version))


def _repeat_an_id(graph: Graph) -> None:
    add_rows(graph, {"Person": [{"id": "ada", "name": "ada"}]})


def _repeat_a_key(graph: Graph) -> None:
    add_rows(graph, {"Person": [{"id": "another", "name": "ada"}]})


def _leave_an_edge_dangling(graph: Graph) -> None:
    add_rows(graph, {"Knows": [{"id": "ada-nobody", "src": "ada", "dst": "nobody"}]})


def _move_a_head(graph: Graph) -> None:
    pin = graph.snapshot().pin(PERSON)
    table = graph._store.tables.open_latest(pin.location, ref=None)
    rows = pa.Table.from_pylist([person("intruder")], table.schema)
    author = heads.Authorship(OperationId(_clock.ulid()), OperationKind.LOAD)
    heads.apply(staging.stage_append(table, rows), author)


def _leave_a_sidecar(graph: Graph) -> None:
    pin = graph.snapshot().pin(PERSON)
    intent = Intent(
        operation_id=OperationId(_clock.ulid()),
        draft=CommitDraft(MAIN, _new_id(), OperationKind.LOAD),
        started_at=_clock.now() - timedelta(hours=1),
        lease_until=_clock.now() - timedelta(minutes=50),
        tables=(TableIntent(PERSON, pin.location, pin.ref, pin.version, pin.version + 1),),
    )
    Sidecars(graph._store.objects).put(intent)


def _leave_an_unreadable_sidecar(graph: Graph) -> None:
    graph._store.objects.put(f"{RECOVERY}/{_clock.ulid()}.json", b"half of a sid")


def _interrupt_a_write(graph: Graph) -> None:
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), lambda: insert(graph, "zoe"))


def _name_a_branch_without_a_ref(graph: Graph) -> None:
    folder = Path(graph.uri, BRANCHES)
    record = (folder / f"{DRAFT}.json").read_text()
    ref = graph.snapshot(branch=DRAFT).ref
    assert ref is not None
    (folder / "ghost.json").write_text(record.replace(ref, _clock.ulid()))


def _garble_a_branch(graph: Graph) -> None:
    Path(graph.uri, BRANCHES, f"{DRAFT}.json").write_text("{")


def _lose_the_refs_of_a_branch(graph: Graph) -> None:
    shutil.rmtree(Path(graph.uri, MANIFEST, REF_FOLDER))


def _record_a_recovery_twice(graph: Graph) -> None:
    audit = lance.dataset(f"{graph.uri}/{RECOVERIES}")
    lance.write_dataset(audit.to_table(), audit, mode="append")


FAULTS: Final = {
    "a lost data file": Fault(_lose_a_data_file, Invariant.TABLE, "node:Person rows cannot be"),
    "a garbled data file": Fault(
        _garble_a_data_file, Invariant.TABLE, "node:Person rows cannot be"
    ),
    "a lost version": Fault(_lose_a_version, Invariant.TABLE, "node:Person cannot be opened"),
    "a lost table": Fault(_lose_a_table, Invariant.TABLE, "node:Person cannot be opened"),
    "a lost version of the past": Fault(
        _lose_an_old_version, Invariant.TABLE, "node:Person cannot be opened"
    ),
    "a lost data file of the past": Fault(
        _lose_an_old_data_file, Invariant.TABLE, "node:Person a file with its rows is not there"
    ),
    "a lost manifest of the past": Fault(
        _lose_an_old_manifest, Invariant.PAST, "commit __manifest, version cannot be read"
    ),
    "a pin above the head": Fault(
        _pin_a_missing_version, Invariant.TABLE, "node:Person cannot be opened"
    ),
    "a pin below the head": Fault(
        _pin_an_old_version, Invariant.HEAD, "node:Person is pinned at version omnigraph repair"
    ),
    "a wrong row count": Fault(
        _count_rows_wrongly, Invariant.TABLE, "node:Person has 4 rows says 99"
    ),
    "a dropped commit": Fault(_drop_a_commit, Invariant.HISTORY, "parent is not in the history"),
    "a dropped head": Fault(_drop_the_head_commit, Invariant.BRANCH, "main head commit"),
    "a dropped pin": Fault(_drop_a_pin, Invariant.SCHEMA, "node:Person it has no table"),
    "two first commits": Fault(
        _have_two_first_commits, Invariant.HISTORY, "no parent is the first commit"
    ),
    "a commit twice": Fault(_have_a_commit_twice, Invariant.HISTORY, "occurs twice"),
    "a lost schema": Fault(_lose_the_schema, Invariant.SCHEMA, "__schemas is missing"),
    "a kept schema edited": Fault(_edit_the_kept_schema, Invariant.SCHEMA, "text does not mean"),
    "the schema text edited": Fault(
        _edit_the_schema_text, Invariant.SCHEMA, "_schema.pg was edited omnigraph schema show"
    ),
    "a foreign column": Fault(_add_a_column, Invariant.SCHEMA, "node:Person nickname"),
    "an id twice": Fault(_repeat_an_id, Invariant.RULE, "key Person(name) 'ada' occurs 2 times"),
    "a key twice": Fault(_repeat_a_key, Invariant.RULE, "unique Person(name) 'another' 'ada'"),
    "a dangling edge": Fault(
        _leave_an_edge_dangling, Invariant.RULE, "endpoint Knows(dst) 'ada-nobody' does not exist"
    ),
    "a head that nobody answers for": Fault(
        _move_a_head, Invariant.HEAD, "node:Person its head is omnigraph repair"
    ),
    "a stray sidecar": Fault(_leave_a_sidecar, Invariant.SIDECAR, "load interrupted"),
    "an unreadable sidecar": Fault(
        _leave_an_unreadable_sidecar, Invariant.SIDECAR, "__recovery cannot be processed"
    ),
    "an interrupted write": Fault(_interrupt_a_write, Invariant.SIDECAR, "mutation interrupted"),
    "a branch without a ref": Fault(
        _name_a_branch_without_a_ref, Invariant.BRANCH, "ghost which carries it is not there"
    ),
    "a garbled branch": Fault(_garble_a_branch, Invariant.BRANCH, "draft cannot be read"),
    "a branch whose refs are lost": Fault(
        _lose_the_refs_of_a_branch, Invariant.BRANCH, "draft which carries it is not there"
    ),
    "a recovery twice": Fault(_record_a_recovery_twice, Invariant.RECOVERY, "recorded 2 times"),
}
