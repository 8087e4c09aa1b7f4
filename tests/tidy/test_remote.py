"""The two facades have the same surface, and a remote one loads neither storage nor engines."""

import inspect
import json
import subprocess
import sys
from typing import Any, Final

import pytest

from omnigraph.documents.classes import class_named, every_name
from omnigraph.documents.operations import OPERATIONS
from omnigraph.graph import Graph
from omnigraph.remote.graph import NOT_REMOTE, RemoteGraph

HEAVY: Final = ("lance", "obstore", "duckdb", "pyspark")
OWN_ROUTES: Final = {"load", "export"}
PARTS: Final = sorted(
    name for name, each in vars(RemoteGraph).items() if isinstance(each, property)
)
REFUSED: Final = {"frame", "vertices", "edges", "ingest"}
HERE: Final = {"close", "uri", "target", "read_only", "has_written"}
"""What needs no request."""


def public(kind: type) -> dict[str, Any]:
    members = {name: each for base in reversed(kind.__mro__) for name, each in vars(base).items()}
    return {name: each for name, each in members.items() if not name.startswith("_")}


def part_of(graph: type, name: str) -> type | None:
    """The class of a part of a graph, such as its branches; None for a method."""
    member = vars(graph)[name]
    if not isinstance(member, property):
        return None
    said = str(inspect.signature(member.fget).return_annotation)  # type: ignore[arg-type]
    module = sys.modules[graph.__module__]
    found = getattr(module, said, None)
    if found is None and said == "StoredQueries":
        from omnigraph.accessors.stored_queries import StoredQueries

        return StoredQueries
    if found is None and said == "ProposalList":
        from omnigraph.accessors.proposals import ProposalList

        return ProposalList
    return found if inspect.isclass(found) and name not in HERE else None


def test_every_method_of_a_graph_is_remote_or_listed_with_its_reason() -> None:
    own = set(public(Graph)) | {"read_only", "authority"}
    remote = set(public(RemoteGraph)) - {"prefix", "call"}

    assert own - remote == set(NOT_REMOTE) - REFUSED
    assert remote - own == {"has_written"}
    assert all(NOT_REMOTE.values())


def test_signatures_are_those_of_the_local_methods() -> None:
    for name, member in public(RemoteGraph).items():
        if inspect.isfunction(member) and name not in ("call",):
            assert inspect.signature(member) == inspect.signature(getattr(Graph, name)), name


@pytest.mark.parametrize("name", [name for name in PARTS if name not in HERE])
def test_parts_have_the_same_methods(name: str) -> None:
    own, remote = part_of(Graph, name), part_of(RemoteGraph, name)
    assert own is not None
    assert remote is not None
    mine, theirs = public(own), public(remote)

    assert set(theirs) - {"prefix", "call"} == set(mine)
    for method, function in mine.items():
        assert inspect.signature(theirs[method]) == inspect.signature(function)
        assert f"{name}.{method}" in OPERATIONS


def test_every_operation_is_a_method_and_every_method_an_operation() -> None:
    methods = {name for name, each in public(RemoteGraph).items() if inspect.isfunction(each)}
    plain = methods - REFUSED - OWN_ROUTES - HERE - {"call"}

    assert {name for name in OPERATIONS if "." not in name} == plain
    for name, operation in OPERATIONS.items():
        assert operation.name == name
        assert set(operation.texts) <= parameters(name)


def parameters(operation: str) -> set[str]:
    owner, _, method = operation.rpartition(".")
    kind = part_of(Graph, owner) if owner else Graph
    return set(inspect.signature(getattr(kind, method)).parameters)


def test_every_class_of_documents_is_where_they_say() -> None:
    assert all(class_named(name) is not None for name in every_name())
    assert class_named("Popen") is None


def loaded_by(program: str) -> list[str]:
    """The heavy libraries that a new interpreter has loaded after a program."""
    tell = f"json.dumps([name for name in {HEAVY!r} if name in sys.modules])"
    said = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{program}\nprint({tell})"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: list[str] = json.loads(said.stdout)
    return found


CLIENT: Final = """
from omnigraph.remote import connections, exports, graph, loads, logins
"""
RESULTS: Final = """
from omnigraph.documents.classes import class_named, every_name
for name in every_name():
    class_named(name)
"""


@pytest.mark.parametrize("program", [CLIENT, RESULTS], ids=["client", "results"])
def test_a_remote_graph_loads_neither_storage_nor_engines(program: str) -> None:
    assert loaded_by(program) == []


def test_the_check_of_what_is_loaded_can_fail() -> None:
    assert loaded_by("import omnigraph.storage.store") == ["lance", "obstore"]
