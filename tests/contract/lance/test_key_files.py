"""Files of an index of ids: pages of ids in order, and where the rows are, read without a scan."""

from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.file import LanceFileReader

IDS = [f"k{number:04}" for number in range(5_000)]


def indexed(uri: str) -> tuple[LanceDataset, str]:
    """A table of two fragments whose row ids are no addresses, and the folder of its index."""
    rows = pa.table({"id": IDS[::-1], "n": range(len(IDS))})
    dataset = lance.write_dataset(rows, uri, max_rows_per_file=3_000, enable_stable_row_ids=True)
    segment = dataset.create_index_uncommitted("id", "BTREE", name="ids", fragment_ids=[0, 1])
    operation = LanceOperation.CreateIndex(new_indices=[segment], removed_indices=[])
    dataset = LanceDataset.commit(dataset, operation, read_version=dataset.version)
    return dataset, f"{uri}/_indices/{segment.uuid}"


def test_pages_have_ids_in_order_and_the_first_and_last_of_each_are_known(uri):
    _, folder = indexed(uri)
    lookup = LanceFileReader(f"{folder}/page_lookup.lance")
    facts = lookup.metadata().schema.metadata
    assert (facts[b"batch_size"], facts[b"range_partitioned"]) == (b"4096", b"false")
    assert lookup.read_all().to_table().to_pydict() == {
        "min": [IDS[0], IDS[4096]],
        "max": [IDS[4095], IDS[-1]],
        "null_count": [0, 0],
        "page_idx": [0, 1],
    }
    data = LanceFileReader(f"{folder}/page_data.lance")
    assert data.num_rows() == len(IDS)
    assert data.read_range(4096, 904).to_table()["values"].to_pylist() == IDS[4096:]


def test_an_index_of_ids_has_addresses_and_not_row_ids(uri):
    dataset, folder = indexed(uri)
    rows = dataset.scanner(["id", "_rowaddr", "_rowid"]).to_table().to_pylist()
    assert any(row["_rowaddr"] != row["_rowid"] for row in rows)
    pages = LanceFileReader(f"{folder}/page_data.lance").read_all().to_table().to_pydict()
    found = dict(zip(pages["values"], pages["ids"], strict=True))
    assert found == {row["id"]: row["_rowaddr"] for row in rows}


def test_rows_are_taken_from_a_fragment_by_their_position_among_those_that_are_left(uri):
    dataset, _ = indexed(uri)
    dataset.delete("n in (3000, 3005)")
    fragment = dataset.get_fragment(1)
    assert fragment is not None
    assert fragment.take([0, 3, 4], columns=["n"])["n"].to_pylist() == [3001, 3004, 3006]


def test_a_reader_refuses_a_second_thread(uri):
    _, folder = indexed(uri)
    reader = LanceFileReader(f"{folder}/page_data.lance")

    def read(_: int) -> str:
        try:
            reader.read_range(0, 4096).to_table()
        except RuntimeError as failure:
            return str(failure)
        return ""

    with ThreadPoolExecutor(4) as pool:
        said = {*pool.map(read, range(400))}
    assert said == {"", "Already borrowed"}
