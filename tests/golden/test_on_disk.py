"""What a graph is on disk: its files, the objects of JSON, the manifest's rows, and a sidecar.

`OMNIGRAPH_BLESS=1` rewrites the record. A change of it needs a new format stamp, or has to be
readable by graphs that exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import lance

import omnigraph
from omnigraph.failpoints import Failpoint
from tests.support.cases import check_text
from tests.support.clocks import FakeClock
from tests.support.crashes import Cut, cut_off

RECORD: Final = Path(__file__).parent / "on_disk.txt"
SCHEMA: Final = """
node Person { name: String @key  age: I64? @index }
node City { name: String @key }
edge LivesIn: Person -> City
"""
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_DATA_FILE: Final = re.compile(r"(?<=/data/)[^/]+(?=\.lance)")
_VERSION: Final = re.compile(r"\d{20}\.manifest")
_OWNER: Final = re.compile(r'"owner": \{[^}]*\}')


def make(uri: Path) -> None:
    """A graph with something of everything that is stored."""
    clock = FakeClock()
    graph = omnigraph.init(uri, SCHEMA, actor="ada", message="first", clock=clock)
    rows = {"Person": [{"name": "Ada", "age": 36}], "City": [{"name": "Rome"}]}
    graph.load({**rows, "LivesIn": [{"from": "Ada", "to": "Rome"}]})
    graph.settings.set("maintenance.keep_commits", 100)
    graph.tags.create("v1", message="a tag")
    draft = graph.branches.create("review/1")
    draft.mutate('query q() { insert Person { name: "Bob" } }', key="a request")
    graph.branches.create("gone").mutate('query q() { insert City { name: "Oslo" } }')
    graph.merge("gone", delete_branch=True)
    graph.proposals.create("review/1", "a proposal")
    renamed = SCHEMA.replace("node City", 'node Town @rename_from("City")').replace(
        "-> City", "-> Town"
    )
    graph.schema.apply(renamed)
    cut = Cut(Failpoint.WRITE_AFTER_EACH_APPLY)
    cut_off(cut, lambda: draft.mutate('query q() { delete Person where name = "Ada" }'))


def plain(text: str) -> str:
    """A path or a text without what differs from run to run."""
    text = _VERSION.sub("<version>.manifest", text)
    text = _DATA_FILE.sub("<file>", _DIGEST.sub("<digest>", text))
    return _UUID.sub("<uuid>", text)


def describe(uri: Path) -> Iterator[str]:
    """All that is stored, in order."""
    files = [path for path in sorted(uri.rglob("*")) if path.is_file()]
    yield "# Files"
    yield from sorted({plain(str(path.relative_to(uri))) for path in files})
    for path in files:
        name = str(path.relative_to(uri))
        if path.suffix == ".json" and "/_" not in f"/{name}".replace("/__", "/"):
            facts = json.loads(path.read_text(encoding="utf-8"))
            yield f"\n# {plain(name)}"
            yield _OWNER.sub('"owner": {}', plain(json.dumps(facts, indent=1)))
    manifest = lance.dataset(str(uri / "__manifest"))
    yield "\n# The manifest of main"
    yield from (f"{field.name}: {field.type}" for field in manifest.schema)
    for key, value in sorted((manifest.schema.metadata or {}).items()):
        yield f"{key.decode()} = {value.decode()}"
    yield from (plain(json.dumps(row)) for row in manifest.to_table().to_pylist())


def test_a_graph_is_stored_as_recorded(tmp_path: Path) -> None:
    make(tmp_path / "graph.omni")
    check_text(RECORD, "\n".join(describe(tmp_path / "graph.omni")) + "\n")
