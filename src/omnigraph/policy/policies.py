"""Policies: rules, groups and tests, from a `.toml` file or, rules alone, from a `.cedar` file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError
from omnigraph.policy.actions import Action
from omnigraph.policy.protections import Protection
from omnigraph.policy.questions import AccessQuestion, Answer, Resource
from omnigraph.policy.rules import PolicyRules

_KEYS: Final = frozenset({"rules", "groups", "protected", "tests"})
_TEST_KEYS: Final = frozenset({"actor", "action", "graph", "branch", "type", "source", "expect"})
_EXPECTED: Final = {"allow": True, "deny": False}


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A question of a policy's file, and what its author expects."""

    question: AccessQuestion
    expects_allowed: bool


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Rules, who is in which group, and questions that the rules must answer as expected."""

    rules: PolicyRules
    groups: Mapping[str, tuple[str, ...]]
    tests: tuple[PolicyTest, ...] = ()
    protections: tuple[Protection, ...] = ()

    def answer(self, question: AccessQuestion) -> Answer:
        """What the policy says to a question. A protection forbids, whatever the rules permit."""
        for protection in self.protections:
            if (why := protection.refuses(question)) is not None:
                return Answer(is_allowed=False, protection=why)
        if (why := self._refuses_start(question)) is not None:
            return Answer(is_allowed=False, protection=why)
        return self.rules.answer(question, self.groups)

    def _refuses_start(self, question: AccessQuestion) -> str | None:
        """Why a protected branch may not start there: what it has was merged into another one."""
        branch = question.resource.branch
        if question.action is not Action.BRANCH_CREATE or not self.protects(branch):
            return None
        if self.protects(question.source):
            return None
        start = "" if question.source is None else f", not at {question.source}"
        return f"branch {branch} is protected, and starts at a protected branch{start}"

    def protects(self, branch: str | None) -> bool:
        """Whether a branch is protected, by however many approvals."""
        return any(each.covers(branch) for each in self.protections)

    def approvals_needed(self, branch: str) -> int:
        """How many reviewers have to approve what is merged into a branch."""
        covering = (each.approvals for each in self.protections if each.covers(branch))
        return max(covering, default=0)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a policy."""
        file = Path(path)
        text = _read_text(file)
        if file.suffix == ".cedar":
            return cls(PolicyRules(text, str(path)), {})
        try:
            fields = tomllib.loads(text)
        except tomllib.TOMLDecodeError as cause:
            _refuse(f"{path} is not TOML: {cause}", cause=cause)
        _refuse_other_keys(str(path), fields, _KEYS)
        rules = file.parent / _require_string(f"{path}: rules", fields.get("rules"))
        groups = _read_groups(str(path), fields.get("groups", {}))
        tests = _read_tests(str(path), fields.get("tests", []))
        protections = _read_protections(str(path), fields.get("protected", {}))
        return cls(PolicyRules(_read_text(rules), str(rules)), groups, tests, protections)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as cause:
        message = f"policy {file} does not exist"
        raise NotFoundError(message, hint="name a .toml or a .cedar file") from cause
    except (OSError, UnicodeDecodeError) as cause:
        _refuse(f"the policy {file} cannot be read: {cause}", cause=cause)


def _read_groups(path: str, groups: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(groups, dict):
        _refuse(f"{path}: groups is not a table of names and members")
    read: dict[str, tuple[str, ...]] = {}
    for name, members in groups.items():
        if not isinstance(members, list) or not all(isinstance(each, str) for each in members):
            _refuse(f"{path}: groups.{name} is not a list of actors")
        read[name] = tuple(members)
    return read


def _read_protections(path: str, protected: Any) -> tuple[Protection, ...]:
    if not isinstance(protected, dict):
        _refuse(f"{path}: protected is not a table of branches and numbers of approvals")
    for pattern, approvals in protected.items():
        if isinstance(approvals, bool) or not isinstance(approvals, int) or approvals < 0:
            _refuse(f"{path}: protected.{pattern} is not a number of approvals")
    return tuple(Protection(pattern, approvals) for pattern, approvals in protected.items())


def _read_tests(path: str, tests: Any) -> tuple[PolicyTest, ...]:
    if not isinstance(tests, list):
        _refuse(f"{path}: tests is not an array of tables: write [[tests]]")
    return tuple(_read_test(f"{path}: test {index}", test) for index, test in enumerate(tests, 1))


def _read_test(where: str, fields: Any) -> PolicyTest:
    if not isinstance(fields, dict):
        _refuse(f"{where} is not a table")
    _refuse_other_keys(where, fields, _TEST_KEYS)
    texts = {key: _require_string(f"{where}: {key}", value) for key, value in fields.items()}
    if texts.get("expect") not in _EXPECTED:
        _refuse(f"{where}: expect is neither allow nor deny")
    if "type" in texts and "branch" not in texts:
        _refuse(f"{where}: a type is on a branch, and none is named")
    resource = Resource(texts.get("graph", ""), texts.get("branch"), texts.get("type"))
    action = Action.parse(_require_string(f"{where}: action", fields.get("action")))
    question = AccessQuestion(texts.get("actor"), action, resource, texts.get("source"))
    return PolicyTest(question, _EXPECTED[texts["expect"]])


def _refuse_other_keys(where: str, fields: Mapping[str, Any], known: frozenset[str]) -> None:
    if others := sorted(set(fields) - known):
        message = f"{where}: unknown key {others[0]!r}"
        _refuse(message, hint=f"the keys are {', '.join(sorted(known))}")


def _require_string(where: str, value: Any) -> str:
    if not isinstance(value, str):
        _refuse(f"{where} is {'missing' if value is None else 'no text'}")
    return value


def _refuse(
    message: str, *, hint: str = "see docs/policy.md", cause: Exception | None = None
) -> NoReturn:
    raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_POLICY) from cause
