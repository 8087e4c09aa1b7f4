"""Writes the reference pages from what the code itself says: `python -m tools.reference`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

import typer

from omnigraph import errors
from omnigraph.cli.exits import Exit, exit_code
from omnigraph.cli.main import app
from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.integrity.violations import IntegrityError
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.query.codes import QueryCode
from omnigraph.schema.change_codes import ChangeCode
from omnigraph.schema.findings import SchemaCode
from tools import python_reference, web_types

ROOT: Final = Path(__file__).parents[1]

_GENERATED: Final = (
    "<!-- Written by `python -m tools.reference`; change the code it is made from instead. -->"
)

_SENTENCES: Final[Mapping[ErrorCode, tuple[type[OmnigraphError], str]]] = {
    ErrorCode.INVALID_INPUT: (errors.InvalidInputError, "The request, or a text in it, is wrong."),
    ErrorCode.INVALID_NAME: (errors.InvalidNameError, "A name breaks the naming rules."),
    ErrorCode.INVALID_PARAMETER: (
        errors.InvalidParameterError,
        "A parameter or an option is missing, unknown, or not of its type.",
    ),
    ErrorCode.INVALID_SCHEMA: (errors.InvalidInputError, "A schema breaks the schema's rules."),
    ErrorCode.INVALID_URI: (errors.InvalidInputError, "That is no place for a graph."),
    ErrorCode.NOT_FOUND: (errors.NotFoundError, "What was named does not exist."),
    ErrorCode.GRAPH_NOT_FOUND: (errors.GraphNotFoundError, "There is no graph at that URI."),
    ErrorCode.BUCKET_NOT_FOUND: (errors.NotFoundError, "There is no such bucket."),
    ErrorCode.BRANCH_NOT_FOUND: (errors.BranchNotFoundError, "The graph has no such branch."),
    ErrorCode.COMMIT_NOT_FOUND: (
        errors.CommitNotFoundError,
        "No branch and no tag has such a commit.",
    ),
    ErrorCode.VERSION_NOT_FOUND: (errors.NotFoundError, "The manifest has no such version."),
    ErrorCode.TYPE_NOT_FOUND: (errors.TypeNotFoundError, "The schema has no such type."),
    ErrorCode.ALREADY_EXISTS: (errors.AlreadyExistsError, "The name is taken."),
    ErrorCode.GRAPH_EXISTS: (errors.AlreadyExistsError, "The place holds a graph already."),
    ErrorCode.REF_EXISTS: (errors.AlreadyExistsError, "A table has a ref of that name already."),
    ErrorCode.FOREIGN_DIRECTORY: (
        errors.AlreadyExistsError,
        "The place holds files that are not a graph's.",
    ),
    ErrorCode.CONFLICT: (errors.ConflictError, "Somebody else changed the same thing first."),
    ErrorCode.STALE_HEAD: (errors.StaleHeadError, "The branch moved on in the meantime."),
    ErrorCode.EXPECTED_VERSION_MISMATCH: (
        errors.TableConflictError,
        "A table is not at the version that the write was planned on.",
    ),
    ErrorCode.TABLE_HEAD_MOVED: (
        errors.TableConflictError,
        "A table moved under a write that was being applied.",
    ),
    ErrorCode.SCHEMA_CHANGED: (errors.ConflictError, "The schema changed in the meantime."),
    ErrorCode.PUBLISH_CONTENTION: (
        errors.ConflictError,
        "So many writers were publishing that every attempt lost its race.",
    ),
    ErrorCode.OBJECT_CHANGED: (errors.ConflictError, "An object changed under an update of it."),
    ErrorCode.NOT_ALLOWED: (errors.NotAllowedError, "This is not permitted here."),
    ErrorCode.READ_ONLY: (errors.NotAllowedError, "The graph was opened to be read only."),
    ErrorCode.LIMIT_EXCEEDED: (errors.LimitExceededError, "The request is larger than a limit."),
    ErrorCode.VALUE_OUT_OF_RANGE: (
        errors.InvalidInputError,
        "A value does not fit its type: a sum too large, a float that is not finite.",
    ),
    ErrorCode.NOT_YET: (errors.InvalidInputError, "It is understood, and cannot be run yet."),
    ErrorCode.ENGINE_UNAVAILABLE: (
        errors.InvalidInputError,
        "The engine that was asked for cannot run on this machine.",
    ),
    ErrorCode.MIGRATION_REFUSED: (
        errors.MigrationRefusedError,
        "The schema cannot be changed that way.",
    ),
    ErrorCode.INTEGRITY: (IntegrityError, "The data breaks rules of the schema."),
    ErrorCode.FORMAT: (errors.FormatError, "The graph's format and this release do not meet."),
    ErrorCode.FORMAT_TOO_NEW: (errors.FormatError, "A newer release wrote this: upgrade."),
    ErrorCode.FORMAT_TOO_OLD: (errors.FormatError, "The format is too old for this release."),
    ErrorCode.RECOVERY_NEEDED: (
        errors.RecoveryNeededError,
        "An interrupted write left something that nobody should guess about.",
    ),
    ErrorCode.OUTCOME_UNKNOWN: (
        errors.OutcomeUnknownError,
        "The write may have landed: look for its commit before writing again.",
    ),
    ErrorCode.STORAGE: (errors.StorageError, "The storage failed, or standard output did."),
    ErrorCode.STORAGE_DENIED: (errors.StorageError, "The storage denied access."),
    ErrorCode.CORRUPTED: (errors.StorageError, "The storage holds what nobody can have written."),
    ErrorCode.INTERNAL: (errors.InternalError, "A bug. Please report it."),
    ErrorCode.TABLE_BUSY: (
        errors.ConflictError,
        "Others were at work on a table for as long as this write waited.",
    ),
    ErrorCode.UNCOVERED_DRIFT: (
        errors.RecoveryNeededError,
        "A table's head lies beyond its pin, and no interrupted write answers for that.",
    ),
    ErrorCode.STRAY_RESTORE: (
        errors.ConflictError,
        "A recovery that slept has restored a table once more; the next write sets that right.",
    ),
    ErrorCode.BRANCH_EXISTS: (errors.AlreadyExistsError, "The graph has a branch of that name."),
    ErrorCode.MERGE_CONFLICTS: (MergeConflictError, "Two branches changed the same things."),
    ErrorCode.FEED_GAP: (
        errors.FeedGapError,
        "The commit that the cursor names is gone: start again from a baseline.",
    ),
    ErrorCode.BRANCH_IN_USE: (errors.NotAllowedError, "Other branches build on that branch."),
    ErrorCode.MERGE_BASE_UNREADABLE: (
        errors.StorageError,
        "The commit that two branches come from cannot be read, so they cannot be merged.",
    ),
    ErrorCode.NOT_INSTALLED: (
        errors.InvalidInputError,
        "A package that the request needs is not installed; the hint names the extra that has it.",
    ),
    ErrorCode.WORKERS_MISMATCH: (
        errors.InvalidInputError,
        "The Python of Spark's workers is another one, or lacks this release of the package.",
    ),
    ErrorCode.TAG_NOT_FOUND: (errors.TagNotFoundError, "The graph has no tag of that name."),
    ErrorCode.TAG_EXISTS: (errors.AlreadyExistsError, "The graph has a tag of that name."),
    ErrorCode.COMMIT_LET_GO: (
        errors.CommitLetGoError,
        "Retention let the commit go; it is still in the history, and what it read was removed.",
    ),
    ErrorCode.QUERY_TIMEOUT: (
        errors.LimitExceededError,
        "The query ran for longer than its timeout.",
    ),
    ErrorCode.QUERY_MEMORY: (
        errors.LimitExceededError,
        "The query needs more memory than it may hold.",
    ),
    ErrorCode.QUERY_MAX_ROWS: (
        errors.LimitExceededError,
        "The query has more rows than it may return.",
    ),
    ErrorCode.CANCELLED: (errors.CancelledError, "The caller cancelled the request."),
    ErrorCode.PURGE_REFUSED: (
        errors.NotAllowedError,
        "A branch, a tag, a merge or a rule needs what would be purged; the message says which.",
    ),
    ErrorCode.EMBEDDING_PROVIDER: (
        errors.EmbeddingError,
        "The provider of an embedding model failed, or took too long.",
    ),
    ErrorCode.EMBEDDING_VECTOR: (
        errors.EmbeddingError,
        "The provider returned something that is not a usable vector.",
    ),
    ErrorCode.EMBEDDING_KEY: (
        errors.InvalidInputError,
        "The environment has no usable key for the provider.",
    ),
    ErrorCode.REQUEST_TAKEN: (
        errors.ConflictError,
        "Another process carries out the request with the same key; repeat it.",
    ),
    ErrorCode.REQUEST_MISMATCH: (
        errors.InvalidInputError,
        "The key was used for another request; use a new key for each.",
    ),
    ErrorCode.UNAUTHENTICATED: (
        errors.NotAllowedError,
        "A server needs a token, and got none that is valid.",
    ),
    ErrorCode.TOO_BUSY: (
        errors.LimitExceededError,
        "A server has no room for the request; repeat it after `Retry-After`.",
    ),
    ErrorCode.RANGE_NOT_SATISFIABLE: (
        errors.InvalidInputError,
        "A blob has no bytes in the range that was asked for.",
    ),
    ErrorCode.NOT_ACCEPTABLE: (
        errors.InvalidInputError,
        "A server has none of the forms that a request accepts.",
    ),
    ErrorCode.UNSUPPORTED_MEDIA: (
        errors.InvalidInputError,
        "A server does not read or write this media type or compression.",
    ),
    ErrorCode.BODY_TOO_LARGE: (
        errors.LimitExceededError,
        "The body of a request is larger, or took longer, than a server allows.",
    ),
    ErrorCode.EMBEDDING_MODEL: (
        errors.InvalidInputError,
        "The vectors were made by another model than the query's.",
    ),
    ErrorCode.INVALID_POLICY: (
        errors.InvalidInputError,
        "A policy, or a rule in it, is not valid; the message says where.",
    ),
    ErrorCode.FORBIDDEN: (
        errors.NotAllowedError,
        "The policy does not allow this to the actor; the message names the rule.",
    ),
    ErrorCode.STREAM: (
        errors.StreamError,
        "A stream and what the branch records of it disagree.",
    ),
    ErrorCode.STREAM_MOVED: (
        errors.ConflictError,
        "Another process wrote the same batch of a stream meanwhile.",
    ),
    ErrorCode.STREAM_REPLACED: (
        errors.StreamError,
        "The checkpoint of a stream was deleted or replaced since its newest batch.",
    ),
    ErrorCode.STREAM_REWOUND: (
        errors.StreamError,
        "The checkpoint gives an older batch than the branch has, or another of that number.",
    ),
    ErrorCode.STREAM_UNKNOWN: (
        errors.StreamError,
        "The checkpoint has done batches, and the branch has none of them.",
    ),
    ErrorCode.STREAM_RENAMED: (
        errors.StreamError,
        "The checkpoint is that of a stream of another name.",
    ),
    ErrorCode.STREAM_GAP: (
        errors.StreamError,
        "The checkpoint has done batches that the branch does not have.",
    ),
    ErrorCode.PROPOSAL_NOT_FOUND: (
        errors.ProposalNotFoundError,
        "The graph has no such proposal.",
    ),
    ErrorCode.PROPOSAL_ENDED: (errors.InvalidInputError, "The proposal was merged or closed."),
    ErrorCode.PROPOSAL_EMPTY: (
        errors.InvalidInputError,
        "The target has everything that the proposed branch has.",
    ),
    ErrorCode.OWN_PROPOSAL: (errors.NotAllowedError, "Authors do not approve their proposals."),
}
"""The class that carries a code, and what the code means; `errors_page` needs all of them."""

_EXITS: Final[Mapping[Exit, str]] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed, or not allowed, though the request is well formed",
    Exit.USAGE: "the command line is wrong; with `--json` the error has the code `usage`",
    Exit.INVALID: "the input is invalid, or breaks a rule",
    Exit.CONFLICT: "a conflict, or a name that is taken",
    Exit.NOT_FOUND: "what was named does not exist",
    Exit.RECOVERY: "look, or repair, before going on",
    Exit.INTERRUPTED: "interrupted",
}


def cli_page() -> str:
    """The command line: every command with its arguments and options."""
    lines = [
        "# Command line",
        "",
        _GENERATED,
        "",
        "Standard output is data; standard error is talk. Exit codes are in [errors](errors.md).",
    ]
    for path, command in commands():
        if is_runnable(command):
            lines += ["", *_command(path, command)]
    lines += ["", "## Options before any command", "", *_options(_root().params)]
    return "\n".join(lines) + "\n"


def is_runnable(command: Any) -> bool:
    """Whether it does something by itself, which few groups of commands do."""
    return not getattr(command, "commands", None) or command.invoke_without_command


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and group by its full name, in the order of `--help`."""
    pending = [("omnigraph", _root())]
    while pending:
        path, command = pending.pop(0)
        yield path, command
        below = getattr(command, "commands", {})
        pending = [(f"{path} {name}", each) for name, each in below.items()] + pending


def errors_page() -> str:
    """Every error code, every exit code, and every rule of both languages and of schema changes."""
    undocumented = set(ErrorCode) - _SENTENCES.keys()
    assert not undocumented, f"give {sorted(undocumented)} a sentence in tools/reference.py"
    causes = [
        (f"`{code}`", f"`{kind.__name__}`", _exit(kind), sentence)
        for code, (kind, sentence) in ((each, _SENTENCES[each]) for each in ErrorCode)
    ]
    exits = [(each.value, _EXITS[each]) for each in Exit]
    schema = [(f"`{each}`", each.severity, each.sentence) for each in SchemaCode]
    changes = [(f"`{each}`", each.severity, each.sentence) for each in ChangeCode]
    query = [(f"`{each}`", each.severity, each.sentence) for each in QueryCode]
    lines = [
        "# Errors",
        "",
        _GENERATED,
        "",
        "An error has a code that never changes its meaning, a message, and often a hint. In",
        "Python it is an exception of the class shown, below `omnigraph.OmnigraphError`;",
        "on the command line the process ends with the exit code.",
        "",
        "## Codes",
        "",
        *_table(("code", "class", "exit", "meaning"), causes),
        "",
        "## Exit codes",
        "",
        *_table(("exit", "meaning"), exits),
        "",
        "A reader that closes its end of a pipe, as `head` does, is no error.",
        "",
        "## Rules of schemas",
        "",
        *_table(("code", "severity", "rule"), schema),
        "",
        "## Rules of schema changes",
        "",
        *_table(("code", "severity", "rule"), changes),
        "",
        "## Rules of queries",
        "",
        *_table(("code", "severity", "rule"), query),
    ]
    return "\n".join(lines) + "\n"


def python_page() -> str:
    """Every public name of the package."""
    lines = [
        "# Python",
        "",
        _GENERATED,
        "",
        "`import omnigraph` gives everything here. A graph is opened once and asked many times;",
        "results are frozen, and every write takes `actor=` and `message=`.",
        "",
        *python_reference.body(),
    ]
    return "\n".join(lines) + "\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/reference/cli.md": cli_page,
    "docs/reference/python.md": python_page,
    "docs/reference/errors.md": errors_page,
    "web/src/api/wire.ts": web_types.wire_types,
}
"""The pages and modules that are generated, by their paths."""


def write_pages() -> None:
    """Write every page anew."""
    for path, page in PAGES.items():
        (ROOT / path).write_text(page(), encoding="utf-8")


def _exit(kind: type[OmnigraphError]) -> int:
    # The table of exits goes by class, and asks nothing of the error.
    return exit_code(kind.__new__(kind)).value


def _root() -> Any:
    return typer.main.get_command(app)


def _command(path: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    words = [path, *(_argument_word(each) for each in arguments), "[OPTIONS]"]
    yield f"## {path}"
    yield ""
    yield f"`{' '.join(words)}`"
    yield ""
    yield command.help.replace("\b", "").strip()
    if command.params:
        yield ""
        yield from _options(command.params)


def _argument_word(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).strip("[]")
    return name if argument.required else f"[{name}]"


def _options(parameters: Iterable[Any]) -> Iterator[str]:
    rows = [
        (_spelling(each), _default(each), _meaning(each)) for each in parameters if not each.hidden
    ]
    yield from _table(("option", "default", "meaning"), rows)


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_argument_word(parameter)}`"
    names = ", ".join(f"`{each}`" for each in parameter.opts)
    if parameter.is_flag:
        return names
    return f"{names} `{parameter.metavar or parameter.name.strip('_').upper()}`"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default in (None, False):
        return ""
    value = parameter.default
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _meaning(parameter: Any) -> str:
    words = [parameter.help or ""]
    choices = getattr(parameter.type, "choices", ())
    if choices:
        words.append(f"One of {', '.join(f'`{each}`' for each in choices)}.")
    if getattr(parameter, "multiple", False):
        words.append("May be repeated.")
    if parameter.envvar:
        words.append(f"Also `${parameter.envvar}`.")
    return " ".join(words)


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    write_pages()
