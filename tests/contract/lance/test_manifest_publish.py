"""A small table republished whole: state first, lineage carried by reference, one row added."""

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.dataset import Transaction
from lance.fragment import write_fragments

from tests.contract.lance.builders import SCHEMA, commit, create, fragments_of, keys_of, staged


def publish(head: LanceDataset, state: str, row: str) -> LanceDataset:
    """Replace the state fragment, carry the lineage, add one commit row."""
    lineage = fragments_of(head)[1:]
    fragments = [*staged(head, state), *lineage, *staged(head, row)]
    transaction = Transaction(
        read_version=head.version,
        operation=LanceOperation.Overwrite(SCHEMA, fragments),
        uuid=row,
    )
    return LanceDataset.commit(head, transaction, max_retries=0)


def fold(head: LanceDataset, state: str) -> LanceDataset:
    """Replace the state fragment and write the whole lineage as one fragment."""
    lineage = pa.concat_tables([each.to_table() for each in head.get_fragments()[1:]])
    folded = write_fragments(lineage.cast(SCHEMA), head, mode="append")
    return commit(head, LanceOperation.Overwrite(SCHEMA, [*staged(head, state), *folded]))


def state_of(head: LanceDataset) -> list[str]:
    keys: list[str] = head.get_fragments()[0].to_table()["key"].to_pylist()
    return keys


@pytest.fixture
def main(anywhere: str) -> LanceDataset:
    """Three publishes on main: the head is at version 4."""
    head = create(anywhere)
    for number in range(3):
        head = publish(head, f"state {number}", f"commit {number}")
    return head


def reopened(head: LanceDataset, branch: str | None = None) -> LanceDataset:
    fresh = lance.dataset(head.uri)
    return fresh if branch is None else fresh.checkout_version((branch, None))


def test_a_publish_replaces_the_state_and_adds_one_row(main):
    assert main.version == 4
    assert keys_of(reopened(main)) == ["state 2", "commit 0", "commit 1", "commit 2"]


def test_the_state_is_always_the_first_fragment(main):
    assert state_of(reopened(main)) == ["state 2"]


def test_an_older_publish_stays_readable(main):
    assert keys_of(reopened(main).checkout_version(2)) == ["state 0", "commit 0"]


def test_a_stale_publish_is_refused_and_leaves_no_row(main):
    publish(main, "first", "commit first")

    with pytest.raises(CommitConflictError):
        publish(main, "late", "commit late")
    assert "commit late" not in keys_of(reopened(main))


def test_a_publish_finds_its_own_id_in_its_transaction(main):
    read = reopened(main).read_transaction(4)

    assert read is not None
    assert read.uuid == "commit 2"


def test_the_lineage_can_be_folded_into_one_fragment(main):
    fold(main, "folded")

    landed = reopened(main)
    assert keys_of(landed) == ["folded", "commit 0", "commit 1", "commit 2"]
    assert len(landed.get_fragments()) == 2


def test_a_publish_on_a_branch_carries_the_inherited_lineage(main):
    main.create_branch("draft", 4)
    publish(reopened(main, "draft"), "draft state", "draft commit")

    landed = reopened(main, "draft")
    assert landed.version == 5
    assert keys_of(landed) == ["draft state", "commit 0", "commit 1", "commit 2", "draft commit"]


def test_several_publishes_on_a_branch_mix_inherited_and_own_lineage(main):
    main.create_branch("draft", 4)
    for number in range(3):
        publish(reopened(main, "draft"), f"draft state {number}", f"draft commit {number}")

    landed = reopened(main, "draft")
    assert state_of(landed) == ["draft state 2"]
    assert keys_of(landed)[1:] == [
        *(f"commit {number}" for number in range(3)),
        *(f"draft commit {number}" for number in range(3)),
    ]
    landed.validate()


def test_a_publish_on_a_branch_leaves_main_untouched(main):
    before = fragments_of(main)
    main.create_branch("draft", 4)
    publish(reopened(main, "draft"), "draft state", "draft commit")

    after = reopened(main)
    assert after.version == 4
    assert [each.files for each in fragments_of(after)] == [each.files for each in before]
    assert keys_of(after) == ["state 2", "commit 0", "commit 1", "commit 2"]


def test_main_publishes_on_after_a_branch_did(main):
    main.create_branch("draft", 4)
    publish(reopened(main, "draft"), "draft state", "draft commit")
    publish(reopened(main), "state 3", "commit 3")

    assert keys_of(reopened(main))[-1] == "commit 3"
    assert keys_of(reopened(main, "draft"))[-1] == "draft commit"


def test_inherited_fragments_point_at_their_base_and_own_ones_do_not(main):
    main.create_branch("draft", 4)
    landed = publish(reopened(main, "draft"), "draft state", "draft commit")

    bases = [each.files[0].base_id for each in fragments_of(landed)]

    assert bases == [None, 0, 0, 0, None]


def test_a_publish_on_a_branch_of_a_branch_carries_both_lineages(main):
    main.create_branch("draft", 4)
    draft = publish(reopened(main, "draft"), "draft state", "draft commit")
    reopened(main).create_branch("second", ("draft", draft.version))
    for number in range(2):
        publish(reopened(main, "second"), f"second state {number}", f"second commit {number}")

    assert keys_of(reopened(main, "second")) == [
        "second state 1",
        *(f"commit {number}" for number in range(3)),
        "draft commit",
        *(f"second commit {number}" for number in range(2)),
    ]


def test_inherited_lineage_can_be_folded_on_a_branch(main):
    main.create_branch("draft", 4)
    draft = publish(reopened(main, "draft"), "draft state", "draft commit")
    fold(draft, "folded")

    landed = reopened(main, "draft")
    assert [each.files[0].base_id for each in fragments_of(landed)] == [None, None]
    assert keys_of(landed) == ["folded", "commit 0", "commit 1", "commit 2", "draft commit"]


def test_a_branchs_fragments_committed_on_main_make_main_unreadable(main):
    main.create_branch("draft", 4)
    draft = publish(reopened(main, "draft"), "draft state", "draft commit")

    # Accepted, though the files it names are not where main looks for them.
    commit(main, LanceOperation.Overwrite(SCHEMA, fragments_of(draft)))

    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        keys_of(reopened(main))
