"""How a commit can be recognised later: its id, its properties, and what they do not promise."""

import shutil
from pathlib import Path

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction

from tests.contract.lance.builders import (
    OPERATIONS,
    append,
    commit,
    create,
    keys_of,
    rows,
    staged,
)

PROPERTIES = {"omnigraph.operation": "01JCX", "omnigraph.writer": "load"}


def test_uuid_and_properties_read_back_on_main(anywhere):
    base = create(anywhere, "a")
    sent = Transaction(1, append(base, "b"), uuid="01JCX", transaction_properties=PROPERTIES)
    LanceDataset.commit(base, sent, max_retries=0)

    read = lance.dataset(anywhere).read_transaction(2)

    assert read is not None
    assert (read.uuid, read.read_version) == ("01JCX", 1)
    assert read.transaction_properties == PROPERTIES


def test_uuid_and_properties_read_back_on_a_branch(anywhere):
    branch = create(anywhere, "a").create_branch("draft", 1)
    sent = Transaction(1, append(branch, "b"), uuid="01JCX", transaction_properties=PROPERTIES)
    LanceDataset.commit(branch, sent, max_retries=0)

    fresh = lance.dataset(anywhere).checkout_version(("draft", None))
    read = fresh.read_transaction(2)

    assert read is not None
    assert (read.uuid, read.transaction_properties) == ("01JCX", PROPERTIES)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_every_kind_of_commit_carries_its_properties(uri, kind):
    base = create(uri, "a", "b")

    landed = commit(base, OPERATIONS[kind](base), properties=PROPERTIES)
    read = landed.read_transaction(landed.version)

    assert read is not None
    assert read.transaction_properties == PROPERTIES


def test_a_handle_of_main_does_not_see_a_branchs_transaction(uri):
    main = create(uri, "a")
    branch = main.create_branch("draft", 1)
    commit(branch, append(branch, "b"), properties=PROPERTIES)

    with pytest.raises(OSError, match="not found"):
        main.read_transaction(2)


def test_one_transaction_committed_twice_is_applied_twice(uri):
    base = create(uri, "a")
    transaction = Transaction(1, append(base, "b"), uuid="01JCX")
    LanceDataset.commit(base, transaction, max_retries=0)

    again = LanceDataset.commit(base, transaction, max_retries=0)

    assert (again.version, keys_of(again)) == (3, ["a", "b", "b"])


def test_a_rebased_transaction_keeps_its_uuid_and_its_read_version(uri):
    base = create(uri, "a")
    commit(base, append(base, "b"))
    landed = LanceDataset.commit(
        base, Transaction(1, append(base, "c"), uuid="01JCX"), max_retries=0
    )

    read = landed.read_transaction(3)

    assert read is not None
    assert (read.uuid, read.read_version) == ("01JCX", 1)


def test_a_transaction_outlives_the_loss_of_its_file(uri):
    base = create(uri, "a")
    LanceDataset.commit(base, Transaction(1, append(base, "b"), uuid="01JCX"), max_retries=0)
    shutil.rmtree(Path(uri) / "_transactions")

    read = lance.dataset(uri).read_transaction(2)

    assert read is not None
    assert read.uuid == "01JCX"


def test_two_transactions_of_one_uuid_may_share_a_read_version_on_different_branches(uri):
    main = create(uri, "a")
    branch = main.create_branch("draft", 1)
    for each in (main, branch):
        LanceDataset.commit(each, Transaction(1, append(each, "b"), uuid="01JCX"), max_retries=0)

    for each in (lance.dataset(uri), main.checkout_version(("draft", None))):
        read = each.read_transaction(2)
        assert read is not None
        assert read.uuid == "01JCX"


def test_reading_the_transaction_of_a_missing_version_is_an_oserror(uri):
    with pytest.raises(OSError, match="was not found"):
        create(uri, "a").read_transaction(99)


def test_staging_moves_no_version(anywhere):
    base = create(anywhere, "a")

    staged(base, "b")

    assert lance.dataset(anywhere).version == 1


def test_the_operation_reads_back_as_the_same_class(uri):
    base = create(uri, "a")
    landed = commit(base, append(base, "b"))

    read = landed.read_transaction(2)

    assert read is not None
    assert isinstance(read.operation, LanceOperation.Append)


def test_a_compaction_that_rewrote_indexes_cannot_be_read_back(uri):
    lance.write_dataset(rows("a", "b"), uri, enable_stable_row_ids=True)
    lance.write_dataset(rows("c", "d"), uri, mode="append")
    lance.dataset(uri).create_scalar_index("key", "BTREE")
    lance.dataset(uri).optimize.compact_files()

    compacted = lance.dataset(uri)
    with pytest.raises(TypeError, match="RewrittenIndex"):
        compacted.read_transaction(compacted.version)
