"""Table keys: one spelling each, read back exactly."""

import pickle

import pytest

from omnigraph.choices import TableKind
from omnigraph.errors import InvalidNameError
from omnigraph.model.ids import TableId
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey, table_location


@pytest.mark.parametrize("kind", TableKind)
@pytest.mark.parametrize("name", ["Person", "A", "Node_2"])
def test_a_key_is_read_back_from_its_spelling(kind, name):
    key = TableKey(kind, TypeName(name))

    assert TableKey.parse(str(key)) == key
    assert pickle.loads(pickle.dumps(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "Person",
        "node",
        "node:",
        "node:person",
        "Node:Person",
        "NODE:Person",
        "nodes:Person",
        " node:Person",
        "node: Person",
        "node:Person ",
        "node:Person:Person",
        "table:Person",
        "node:Person\n",
    ],
)
def test_a_text_that_no_key_is_spelt_as_is_refused(text):
    with pytest.raises(InvalidNameError):
        TableKey.parse(text)


def test_keys_sort_by_kind_and_then_by_name():
    texts = ["edge:Alpha", "edge:Beta", "node:Alpha", "node:Beta"]

    assert [str(each) for each in sorted(map(TableKey.parse, reversed(texts)))] == texts


def test_nodes_and_edges_live_in_folders_of_their_own():
    assert table_location(TableKind.NODE, TableId("1")) == "nodes/1"
    assert table_location(TableKind.EDGE, TableId("1")) == "edges/1"
