"""Stored queries under a policy: who stores one on main must be allowed to read what it reads.

By the right to invoke alone, an actor runs the texts that main has, and no others: who put a text
there vouches for it (docs/decisions/0022). So the texts of other branches need no check.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from omnigraph.errors import ErrorCode, NotAllowedError
from omnigraph.policy.actions import Action
from omnigraph.query import ir
from omnigraph.query.compile import read_queries
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.stored_queries import STORED_QUERY, stores_queries

if TYPE_CHECKING:
    from omnigraph.policy.authority import Authority
    from omnigraph.transaction.view import View
    from omnigraph.transaction.writes import WriteRequest


def admit_texts(
    writing: Authority, request: WriteRequest, touched: Collection[str], before: View, after: View
) -> None:
    """Refuse a write that leaves a query on main that reads more than its writer may read.

    A change of the schema counts, too: it may let a text read a type that it did not read before.

    Args:
        writing: What the actor of the write may do.
        touched: The types that the write changes.
    """
    if not request.branch.is_main:
        return
    if STORED_QUERY not in touched and after.catalog is before.catalog:
        return
    earlier = dict(_texts(before))
    for name, text in _texts(after):
        is_new = earlier.get(name) != text
        if not is_new and after.catalog is before.catalog:
            continue
        reads = _reads(name, text, after.catalog)
        if reads is None:
            if is_new:
                raise _unfit_error(name)
            continue
        known = frozenset() if is_new else _reads(name, text, before.catalog) or frozenset()
        # A query of others may be hidden, with its name.
        shown = name if is_new or writing.may_invoke(before.snapshot, name) else None
        _require_readable(writing, request, shown, reads - known)


def _texts(view: View) -> Iterator[tuple[str, str]]:
    """The queries of a view: the id by which each is invoked, and its text."""
    if not stores_queries(view.catalog):
        return
    declared = view.catalog.type_named(STORED_QUERY)
    if "text" not in {property_.name for property_ in declared.properties}:
        # Somebody declared another type of that name, of which nothing can be run.
        return
    for batch in view.data.table(declared.table_key).scan(["id", "text"]):
        for row in batch.to_pylist():
            yield str(row["id"]), str(row["text"])


def _reads(name: str, text: str, catalog: Catalog) -> frozenset[str] | None:
    """The types that a stored query reads; None if it does not fit the schema.

    One that changes the graph runs with the rights of whoever runs it.
    """
    for query in read_queries(text, catalog, name).queries or ():
        if query.name == name:
            keys = query.reads if isinstance(query, ir.ReadQuery) else ()
            return frozenset(key.type_name for key in keys)
    return None


def _require_readable(
    writing: Authority, request: WriteRequest, name: str | None, types: Collection[str]
) -> None:
    try:
        writing.require(Action.READ, branch=request.branch, types=sorted(types))
    except NotAllowedError as refusal:
        which = "a stored query" if name is None else f"the stored query {name}"
        message = f"{which} reads what its writer may not: {refusal.message}"
        raise NotAllowedError(
            message, hint=refusal.hint, code=refusal.code, **refusal.details
        ) from refusal


def _unfit_error(name: str) -> NotAllowedError:
    message = (
        f"the stored query {name[:100]!r} does not fit the schema, so what it reads is unknown"
    )
    hint = "'omnigraph queries put' says what is wrong with it"
    return NotAllowedError(message, hint=hint, code=ErrorCode.FORBIDDEN)
