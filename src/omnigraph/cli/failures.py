"""How errors are printed: for people with the next step, for programs as JSON."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from omnigraph.cli.render import ErrorStyle, say, say_table, to_document
from omnigraph.errors import OmnigraphError
from omnigraph.integrity.violations import IntegrityError, IntegrityReport
from omnigraph.merge.conflicts import Conflict, MergeConflictError

_VALUE_SHOWN_MAX: Final = 60
"""Characters of a value that a table of conflicts shows; JSON has the whole value."""


def show_error(error: BaseException, style: ErrorStyle) -> None:
    """Print what went wrong and what to do next; the stack trace only with `--debug`.

    The message of an error about a text has every fault of the text, each with a caret.
    """
    if style.debug:
        say("".join(traceback.format_exception(error)).rstrip())
    if not isinstance(error, OmnigraphError):
        _show_bug(error, style)
    elif style.json:
        say(to_document(_facts(error)))
    elif isinstance(error, MergeConflictError):
        say(f"error[{error.code.value}]: {error.message.partition(': ')[0]}")
        say_conflicts(error.conflicts, error.conflict_count)
        _say_more(_notes(error), error.hint)
    elif isinstance(error, IntegrityError) and style.tabulates:
        say(f"error[{error.code.value}]: {error.message.partition(chr(10))[0]}")
        _say_report(error.report)
        _say_more(_notes(error), error.hint)
    else:
        say(f"error[{error.code.value}]: {error.message}")
        _say_more(_notes(error), error.hint)


def say_conflicts(conflicts: Iterable[Conflict], count: int) -> None:
    """Print every conflict that can be named, and an example of how to decide one."""
    listed = list(conflicts)
    columns = ["kind", "type", "id", "property", "base", "ours", "theirs"]
    explanations = [_explain(conflict) for conflict in listed]
    is_explained = any(explanations)
    say_table(
        [*columns, "what"] if is_explained else columns,
        [
            (
                *(conflict.kind, conflict.type_name, conflict.id, conflict.property),
                *_sides(conflict),
                *([explanation] if is_explained else []),
            )
            for conflict, explanation in zip(listed, explanations, strict=True)
        ],
    )
    if more := count - len(listed):
        say(f"and {more:,} more")
    if listed:
        first = listed[0]
        place = {
            "type": first.type_name,
            "id": first.id,
            "property": first.property,
            "facet": first.facet,
        }
        named = {name: value for name, value in place.items() if value is not None}
        say("to decide one by one, give a file to --resolve, such as")
        side = "theirs" if first.may_take_theirs() else "ours"
        say(f"  {_json_line([{**named, 'take': side}])}")


def _explain(conflict: Conflict) -> str:
    """What the values do not tell: broken rules, and edges that were deleted with their node."""
    parts = (conflict.message, conflict.describe_edges(), *conflict.reasons)
    return "; ".join(filter(None, parts))


def _show_bug(error: BaseException, style: ErrorStyle) -> None:
    text = f"{type(error).__name__}: {error}"
    hint = "this is a bug: run it again with --debug and report what that prints"
    if style.json:
        facts = {"error": text, "code": "internal", "hint": hint, "notes": _notes(error)}
        say(to_document({**facts, "details": {}}))
        return
    say(f"error[internal]: {text}")
    _say_more(_notes(error), hint)


def _say_more(notes: Iterable[str], hint: str) -> None:
    for note in notes:
        say(f"  {note}")
    if hint:
        say(f"  hint: {hint}")


def _facts(error: OmnigraphError) -> dict[str, object]:
    details = dict(error.details)
    facts: dict[str, object] = {"error": error.message, "code": error.code.value}
    if isinstance(error, MergeConflictError):
        del details["conflicts"]
        facts["conflict_count"] = details.pop("conflict_count")
        facts["merge_conflicts"] = [conflict.to_json() for conflict in error.conflicts]
    return {**facts, "hint": error.hint, "notes": _notes(error), "details": details}


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def _say_report(report: IntegrityReport) -> None:
    say_table(
        ["rule", "type", "property", "violations"],
        [
            (breach.rule, breach.type_name, ", ".join(breach.properties), f"{count:,}")
            for breach, count in report.counts.items()
        ],
    )
    say("")
    if any(violation.origin for violation in report.violations):
        lines = [(each.origin, each.rule, each.message) for each in report.violations]
        say_table(["where", "rule", "what"], lines)
    else:
        say_table(["rule", "what"], [(each.rule, each.message) for each in report.violations])
    if (more := report.total - len(report.violations)) > 0:
        say(f"and {more:,} more like these")


def _sides(conflict: Conflict) -> Iterator[str]:
    """The three values as a table shows them: of whole rows, only what differs."""
    sides = (conflict.base, conflict.ours, conflict.theirs)
    rows = [side for side in sides if isinstance(side, Mapping)]
    same = [
        name
        for name in (rows[0] if rows else ())
        if name == "id" or (len(rows) > 1 and all(row[name] == rows[0][name] for row in rows))
    ]
    for side in sides:
        if isinstance(side, Mapping):
            yield _shorten(_json_line({name: side[name] for name in side if name not in same}))
        elif side is not None:
            yield _shorten(side if isinstance(side, str) else _json_line(side))
        elif conflict.message:
            yield ""
        else:
            yield "no row" if conflict.property is None else "null"


def _shorten(text: str) -> str:
    return text if len(text) <= _VALUE_SHOWN_MAX else f"{text[: _VALUE_SHOWN_MAX - 1]}…"


def _json_line(value: object) -> str:
    from omnigraph.formats.cells import plain_value, to_json

    return to_json(plain_value(value))
