"""Table heads: the only code that moves one or previews a move, and the authorship of moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction

from omnigraph.errors import RETRY_HINT, ErrorCode, TableConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table, TableAddress, Tables
from omnigraph.storage.translate import translate_errors

PREVIEW_ATTEMPTS_MAX: Final = 4
"""Random version numbers that are tried for the preview of a write; of 2**63, all are free."""


_OPERATION: Final = "omnigraph.operation"
_WRITER: Final = "omnigraph.writer"


@dataclass(frozen=True, slots=True)
class Authorship:
    """Which operation made a table version; stored in the version as proof for recovery."""

    operation_id: OperationId
    writer: OperationKind


def apply(staged: StagedWrite, author: Authorship) -> Table:
    """Move the table's head from its pin to the staged transaction."""
    table = _commit(staged.base, staged.address, staged.operation, author)
    for operation in staged.followed_by:
        table = _commit(table, table.address, operation, author)
    return table


def _commit(
    base: Table | Tables,
    address: TableAddress,
    operation: LanceOperation.BaseOperation,
    author: Authorship,
) -> Table:
    transaction = _make_transaction(address.version, operation, author)
    with translate_errors("applying a write to", address.uri):
        committed = LanceDataset.commit(
            base.handle if isinstance(base, Table) else address.uri,
            transaction,
            max_retries=0,
            enable_stable_row_ids=True,
        )
    hit(Failpoint.APPLY_AFTER_COMMIT)
    expected = address.version + 1
    if committed.version != expected:
        message = (
            f"{address.uri} moved under a staged write: "
            f"expected version {expected}, got {committed.version}"
        )
        raise TableConflictError(
            message,
            hint=RETRY_HINT,
            code=ErrorCode.TABLE_HEAD_MOVED,
            location=address.location,
            expected=expected,
            actual=committed.version,
        )
    if isinstance(base, Table):
        return base.successor(expected, committed, changed=_changed_fragments(operation))
    return Table(replace(address, version=expected), committed, base)


def preview(staged: StagedWrite) -> Table:
    """The table as the staged write would make it, before any head moves.

    It is a detached version: no head, no listing and no later version refers to it, and any process
    can open its address. Rows and deletions that are written through it may be part of a later
    write to the head (docs/substrate.md, Other columns).
    """
    base, address = staged.base, staged.address
    assert isinstance(base, Table), "a table that does not exist has no versions to detach from"
    detached = base.handle
    with translate_errors("previewing a write to", address.uri):
        for operation in (staged.operation, *staged.followed_by):
            transaction = Transaction(detached.version, operation)
            # Lance picks the version's number at random, in as many attempts.
            detached = LanceDataset.commit(
                detached, transaction, max_retries=PREVIEW_ATTEMPTS_MAX, detached=True
            )
    return Table(replace(address, version=detached.version), detached, base.owner)


def _changed_fragments(operation: LanceOperation.BaseOperation) -> Iterable[int] | None:
    """The fragments an operation changed or removed, if it only added others; else None."""
    if isinstance(operation, LanceOperation.Append):
        return ()
    if isinstance(operation, LanceOperation.CreateIndex):
        return ()
    if isinstance(operation, LanceOperation.Rewrite):
        return tuple(fragment.id for group in operation.groups for fragment in group.old_fragments)
    if not isinstance(operation, LanceOperation.Update):
        return None
    updated_ids = (fragment.id for fragment in operation.updated_fragments)
    return (*operation.removed_fragment_ids, *updated_ids)


def restore(head: Table, version: int, author: Authorship) -> Table:
    """Make the rows of `version` current again, as a new version above `head`.

    Lance rejects every transaction staged before a restore, so this fences stalled writers
    (docs/decisions/0004). Lance never rejects the restore itself: callers exclude each other first.
    """
    operation = LanceOperation.Restore(version)
    with translate_errors("restoring", head.address.uri):
        committed = LanceDataset.commit(
            head.handle, _make_transaction(head.version, operation, author), max_retries=0
        )
    return head.successor(committed.version, committed)


def author_of(table: Table) -> Authorship | None:
    """The author of this version, or None if it was not made by one of our writers."""
    with translate_errors("reading the transaction of", table.address.uri):
        try:
            transaction = table.handle.read_transaction(table.version)
        except TypeError:
            # Lance cannot read back a compaction that rewrote indexes (docs/substrate.md,
            # Recognising a commit); those carry no properties of ours.
            return None
    properties = (transaction and transaction.transaction_properties) or {}
    if _OPERATION not in properties or properties.get(_WRITER) not in set(OperationKind):
        return None
    return Authorship(OperationId(properties[_OPERATION]), OperationKind(properties[_WRITER]))


def _make_transaction(
    read_version: int, operation: LanceOperation.BaseOperation, author: Authorship
) -> Transaction:
    properties = {_OPERATION: author.operation_id, _WRITER: author.writer.value}
    return Transaction(read_version, operation, transaction_properties=properties)
