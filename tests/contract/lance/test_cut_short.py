"""Lance does not hear when a local disk refuses the last bytes of a file."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import pyarrow as pa
from lance.fragment import write_fragments


@contextmanager
def files_at_most(bytes_max: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_cut_short_is_reported_as_written_with_the_size_it_should_have(
    tmp_path: Path,
) -> None:
    table = pa.table({"id": ["a"]})
    dataset = lance.write_dataset(table, tmp_path / "d", enable_stable_row_ids=True)
    (whole,) = write_fragments(table, dataset, mode="append")
    size = whole.files[0].file_size_bytes
    assert size is not None

    with files_at_most(size - 10):
        (cut,) = write_fragments(table, dataset, mode="append")

    assert cut.files[0].file_size_bytes == size
    assert (tmp_path / "d" / "data" / cut.files[0].path).stat().st_size == size - 10
