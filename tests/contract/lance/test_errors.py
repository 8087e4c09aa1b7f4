"""What Lance raises, by class and by the part of the text that can be relied on.

`lance.dataset` raises ValueError for everything: a missing table, a damaged one, a missing bucket.
Only "was not found" tells a missing table from the rest. Everything else raises OSError.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from tests.contract.lance.builders import (
    SCHEMA,
    append,
    commit,
    create,
    keys_of,
    overwrite,
    rows,
)

NOBODY: Final = 65534
MISSING: Final = "was not found"


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run the block as somebody whom file permissions stop."""
    user = os.geteuid()
    if user != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """Nobody may look inside `path`."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with unprivileged():
            yield
    finally:
        path.chmod(mode)


def newest_manifest(uri: str) -> Path:
    # Manifests are numbered backwards, so the newest sorts first.
    return min((Path(uri) / "_versions").glob("*.manifest"))


# Missing things.


def test_opening_a_missing_table_is_a_valueerror(anywhere):
    with pytest.raises(ValueError, match=MISSING):
        lance.dataset(anywhere)


def test_opening_a_version_of_a_missing_table_is_a_valueerror(anywhere):
    with pytest.raises(ValueError, match=MISSING):
        lance.dataset(anywhere, version=1)


def test_opening_a_missing_version_is_a_valueerror(anywhere):
    create(anywhere, "a")

    with pytest.raises(ValueError, match=rf"_versions/99\.manifest {MISSING}"):
        lance.dataset(anywhere, version=99)


def test_checking_out_a_missing_version_is_an_oserror(anywhere):
    with pytest.raises(OSError, match=rf"_versions/99\.manifest {MISSING}"):
        create(anywhere, "a").checkout_version(99)


def test_checking_out_a_missing_version_of_a_branch_is_an_oserror(anywhere):
    main = create(anywhere, "a")
    main.create_branch("draft", 1)

    with pytest.raises(OSError, match=rf"tree/draft/_versions/99\.manifest {MISSING}"):
        main.checkout_version(("draft", 99))


def test_an_empty_directory_is_a_missing_table(tmp_path):
    with pytest.raises(ValueError, match=MISSING):
        lance.dataset(str(tmp_path))


def test_committing_to_a_missing_table_is_an_oserror(uri, tmp_path):
    operation = append(create(str(tmp_path / "other"), "a"), "b")

    with pytest.raises(OSError, match="must already exist unless the operation is Overwrite"):
        LanceDataset.commit(uri, operation, read_version=1, max_retries=0)


def test_fragments_are_written_even_where_no_table_is(uri):
    write_fragments(rows("a"), uri, mode="append")

    with pytest.raises(ValueError, match=MISSING):
        lance.dataset(uri)


def test_opening_a_table_in_a_missing_bucket_is_a_valueerror_that_says_so(s3_bucket):
    with pytest.raises(ValueError, match="NoSuchBucket") as error:
        lance.dataset(f"s3://{s3_bucket}-missing/table")
    assert MISSING not in str(error.value)


def test_creating_a_table_in_a_missing_bucket_is_an_oserror_that_says_so(s3_bucket):
    with pytest.raises(OSError, match="NoSuchBucket"):
        create(f"s3://{s3_bucket}-missing/table")


def test_opening_a_version_in_a_missing_bucket_looks_like_a_missing_table(s3_bucket):
    with pytest.raises(ValueError, match=MISSING):
        lance.dataset(f"s3://{s3_bucket}-missing/table", version=1)


# Damaged things.


@pytest.mark.parametrize("damage", ["emptied", "halved", "scrambled"])
def test_opening_a_damaged_manifest_is_a_valueerror_that_is_not_about_missing(uri, damage):
    create(uri, "a")
    manifest = newest_manifest(uri)
    content = manifest.read_bytes()
    damaged = {
        "emptied": b"",
        "halved": content[: len(content) // 2],
        "scrambled": bytes(255 - each for each in content),
    }
    manifest.write_bytes(damaged[damage])

    with pytest.raises(ValueError, match=r"LanceError\(IO\)") as error:
        lance.dataset(uri)
    assert MISSING not in str(error.value)


def test_an_older_version_opens_though_the_newest_manifest_is_damaged(uri):
    base = create(uri, "a")
    commit(base, append(base, "b"))
    newest_manifest(uri).write_bytes(b"")

    assert keys_of(lance.dataset(uri, version=1)) == ["a"]


def test_reading_a_damaged_data_file_is_an_arrowinvalid(uri):
    create(uri, "a")
    for each in (Path(uri) / "data").iterdir():
        each.write_bytes(b"xx")

    with pytest.raises(pa.ArrowInvalid, match=r"LanceError\(IO\)"):
        keys_of(lance.dataset(uri))


def test_an_interrupt_while_rows_are_read_is_an_arrowinvalid_that_names_it(uri):
    table = lance.write_dataset(pa.table({"n": range(200_000)}), uri, max_rows_per_file=5_000)

    def raised() -> str:
        timer = threading.Timer(0.002, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            while True:
                table.to_table()
        except KeyboardInterrupt:
            # Between two reads, or before the first row of one.
            return ""
        except pa.ArrowInvalid as error:
            return str(error)
        finally:
            timer.join()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert any(raised() == "External error: KeyboardInterrupt: " for _ in range(100))
    finally:
        signal.signal(signal.SIGINT, before)


def test_reading_a_lost_data_file_is_an_arrowinvalid_that_names_it(uri):
    create(uri, "a")
    for each in (Path(uri) / "data").iterdir():
        each.unlink()

    with pytest.raises(pa.ArrowInvalid, match=r"Not found: .*\.lance"):
        keys_of(lance.dataset(uri))


@pytest.mark.parametrize("hint", ["junk", '{"version":1}', '{"version":77}'])
def test_a_wrong_version_hint_misleads_nobody(uri, hint):
    base = create(uri, "a")
    commit(base, append(base, "b"))
    (Path(uri) / "_versions" / "latest_version_hint.json").write_text(hint)

    assert lance.dataset(uri).version == 2


def test_a_file_where_a_table_should_be_is_a_valueerror(tmp_path):
    (tmp_path / "table").write_text("x")

    with pytest.raises(ValueError, match="Not a directory"):
        lance.dataset(str(tmp_path / "table"), version=1)


# Forbidden things.


def test_an_unreadable_table_is_a_valueerror_that_is_not_about_missing(uri):
    create(uri, "a")

    with (
        forbidden(Path(uri)),
        pytest.raises(ValueError, match="Permission denied") as error,
    ):
        lance.dataset(uri, version=1)
    assert MISSING not in str(error.value)


def test_of_an_error_in_a_stream_that_is_written_only_the_text_is_left(uri):
    def batches() -> Iterator[pa.RecordBatch]:
        yield rows("a").to_batches()[0]
        message = "the source of the rows is gone"
        raise LookupError(message)

    stream = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    with pytest.raises(OSError, match="the source of the rows is gone") as error:
        write_fragments(stream, uri)
    assert not isinstance(error.value.__cause__ or error.value, LookupError)


def test_an_unreadable_data_file_is_an_arrowinvalid_that_says_so(uri):
    base = create(uri, "a")

    with (
        forbidden(Path(uri) / "data"),
        pytest.raises(pa.ArrowInvalid, match="Permission denied"),
    ):
        keys_of(base)


def test_committing_where_writing_is_forbidden_is_an_oserror(uri):
    base = create(uri, "a")
    operation = LanceOperation.Overwrite(SCHEMA, [])

    with (
        forbidden(Path(uri) / "_transactions"),
        pytest.raises(OSError, match="Permission denied"),
    ):
        commit(base, operation)


# Requests that make no sense.


def test_a_conflict_is_an_oserror_that_says_whether_to_retry(uri):
    base = create(uri, "a")
    commit(base, append(base, "b"))

    with pytest.raises(OSError, match="conflict") as error:
        commit(base, overwrite(base, "late"))
    assert isinstance(error.value, CommitConflictError)
    assert error.value.retryable is True


def test_reading_an_unknown_column_is_a_valueerror(uri):
    with pytest.raises(ValueError, match="No field named other"):
        create(uri, "a").to_table(columns=["other"])


def test_filtering_by_an_unknown_column_is_a_valueerror(uri):
    with pytest.raises(ValueError, match="No field named other"):
        create(uri, "a").to_table(filter="other = 1")


def test_an_unparsable_filter_is_a_valueerror(uri):
    with pytest.raises(ValueError, match="Error parsing statement"):
        create(uri, "a").to_table(filter="key = = 1")
