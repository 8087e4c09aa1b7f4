"""Lists of blobs: what Lance reads of them, and what it cannot."""

import lance
import pyarrow as pa
import pytest

BLOBS = pa.list_(
    pa.field("item", pa.large_binary(), nullable=False, metadata={"lance-encoding:blob": "true"})
)
SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("parts", BLOBS)])


@pytest.fixture
def mixed(tmp_path):
    """Two rows of one page: the first has a list with a blob in it, the second an empty one."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(SCHEMA.empty_table(), uri)
    rows = pa.table({"id": ["full", "empty"], "parts": pa.array([[b"x"], []], BLOBS)}, SCHEMA)
    return lance.write_dataset(rows, uri, mode="append")


def test_lists_of_blobs_are_read_whole(mixed):
    found = mixed.scanner(blob_handling="all_binary").to_table()

    assert found["parts"].to_pylist() == [[b"x"], []]


def test_an_empty_list_of_blobs_is_not_read_without_a_full_one(mixed):
    with pytest.raises(pa.ArrowInvalid, match="DataBlockBuilder"):
        mixed.scanner(filter="id = 'empty'", blob_handling="all_binary").to_table()
