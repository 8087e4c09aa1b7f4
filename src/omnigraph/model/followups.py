"""Follow-ups: the steps after a commit has landed, and the report of a failure there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from omnigraph.errors import BranchNotFoundError, ErrorCode, OmnigraphError, StaleHeadError
from omnigraph.model.brief import brief
from omnigraph.model.names import BranchName


class FollowUp(StrEnum):
    """Every step that may follow a commit."""

    INDEX = "index"
    DELETE_BRANCH = "delete_branch"
    SCHEMA_TEXT = "schema_text"
    OPTIMIZE = "optimize"


@brief
@dataclass(frozen=True, slots=True)
class FollowUpFailure:
    """A failed step after a commit. The commit has landed, and must not be repeated.

    Attributes:
        step: `index`, `delete_branch`, `schema_text` or `optimize`.
        code: The code of the error that the step ended with.
        message: What was not done, and why.
        hint: How to make up for it.
    """

    step: FollowUp
    code: ErrorCode
    message: str
    hint: str

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Self:
        """The failure with these fields."""
        step, code = FollowUp(fields["step"]), ErrorCode(fields["code"])
        return cls(step, code, fields["message"], fields["hint"])


def index_failure(branch: BranchName, error: OmnigraphError) -> FollowUpFailure:
    """Report that the indexes could not be brought up to date after a load."""
    message = f"the indexes of branch {branch} are not up to date: {error.message}"
    return FollowUpFailure(FollowUp.INDEX, error.code, message, _hint(error, index_remedy(branch)))


def index_remedy(branch: BranchName) -> str:
    """The step that brings the indexes of a branch up to date."""
    if branch.is_main:
        return "run 'omnigraph index', or graph.ensure_indices() in Python"
    command = f"'omnigraph index --branch {branch}'"
    return f'run {command}, or graph.ensure_indices(branch="{branch}") in Python'


def deletion_failure(
    source: BranchName, target: BranchName, error: OmnigraphError
) -> FollowUpFailure:
    """Report that the source could not be deleted after a merge."""
    message = f"branch {source} was not deleted: {error.message}"
    match error:
        case StaleHeadError():
            hint = f"merge it again: it has commits that {target} lacks"
        case BranchNotFoundError():
            hint = "nothing is left to do: others deleted it"
        case _:
            hint = _hint(error, deletion_remedy(source))
    return FollowUpFailure(FollowUp.DELETE_BRANCH, error.code, message, hint)


def schema_text_failure(error: OmnigraphError) -> FollowUpFailure:
    """Report that the text of the schema at the graph's root could not be brought up to date."""
    message = f"the file _schema.pg still has the schema before this one: {error.message}"
    hint = "nothing reads it for an answer; 'omnigraph schema show' prints the schema"
    return FollowUpFailure(FollowUp.SCHEMA_TEXT, error.code, message, hint)


def optimize_failure(branch: BranchName, error: OmnigraphError) -> FollowUpFailure:
    """Report that automatic maintenance failed."""
    message = f"small files of branch {branch} were not compacted: {error.message}"
    option = "" if branch.is_main else f" --branch {branch}"
    remedy = f"later writes try again; or run 'omnigraph optimize{option}'"
    return FollowUpFailure(FollowUp.OPTIMIZE, error.code, message, _hint(error, remedy))


def deletion_remedy(branch: BranchName) -> str:
    """The step that deletes a branch."""
    command = f"'omnigraph branch delete {branch} --confirm'"
    return f'run {command}, or graph.branches.delete("{branch}") in Python'


def _hint(error: OmnigraphError, remedy: str) -> str:
    """The error's own hint, then the remedy; a retryable error needs only the remedy."""
    return remedy if error.retryable or not error.hint else f"{error.hint}; then {remedy}"
