"""Rules: the text of a policy in Cedar, taken apart so that a mistake is reported where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.policy.questions import VOCABULARY, AccessQuestion, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKENS: Final = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|;|\s+|[^\s;"/]+|.')
_NAME: Final = re.compile(r'^\s*@id\(\s*"([^"]*)"\s*\)')
INSTALL_POLICY: Final = "pip install 'omnigraph[policy]'"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a text.

    Attributes:
        name: Its `@id`, or its number; with the line, how people find it.
    """

    name: str
    line: int
    text: str

    @property
    def label(self) -> str:
        """How messages name it.

        >>> PolicyRule("readers", 3, "permit(principal, action, resource);").label
        'readers (line 3)'
        """
        return f"{self.name} (line {self.line})"


def split_rules(text: str) -> Iterator[PolicyRule]:
    r"""The rules of a text. Each ends with a semicolon, which strings and comments may contain too.

    >>> text = '// ";"\n@id("a") permit(principal, action, resource);\nforbid(principal);'
    >>> [rule.label for rule in split_rules(text)]
    ['a (line 2)', 'rule 2 (line 3)']
    """
    number, line, first_line = 1, 1, 1
    tokens: list[str] = []
    for token in _TOKENS.findall(text):
        is_blank = token.isspace() or token.startswith("//")
        if not is_blank or tokens:
            if not tokens:
                first_line = line
            tokens.append(token)
        line += token.count("\n")
        if token == ";":
            yield _rule(number, first_line, "".join(tokens))
            number, tokens = number + 1, []
    if tokens:
        yield _rule(number, first_line, "".join(tokens))


def _rule(number: int, line: int, text: str) -> PolicyRule:
    named = _NAME.match(text)
    return PolicyRule(named[1] if named else f"rule {number}", line, text)


class PolicyRules:
    """The rules of one policy, which answer questions."""

    def __init__(self, text: str, name: str) -> None:
        """Read rules.

        Args:
            name: What messages call the text: usually its file.
        """
        cedar = _require_cedar()
        self.name = name
        self.rules = tuple(split_rules(text))
        self._schema = cedar.Schema.from_str(VOCABULARY)
        for rule in self.rules:
            if faults := cedar.validate_policies(rule.text, self._schema).errors:
                raise _rule_error(name, rule, str(faults[0].error))
        self._text = text

    @cached_property
    def _policies(self) -> Any:
        return _require_cedar().PolicySet.from_str(self._text)

    def answer(self, question: AccessQuestion, groups: Mapping[str, tuple[str, ...]]) -> Answer:
        """What the rules say. An actor may do what a rule permits and none forbids."""
        cedar = _require_cedar()
        result = cedar.is_authorized(
            question.request(), self._policies, question.entities(groups), self._schema
        )
        reasons = sorted(
            int(reason.removeprefix("policy")) for reason in result.diagnostics.reasons
        )
        return Answer(
            result.decision is cedar.Decision.Allow,
            tuple(self.rules[number].label for number in reasons),
            tuple(result.diagnostics.errors),
        )


def _require_cedar() -> Any:
    try:
        import cedarpy
    except ImportError as cause:
        message = "a policy needs cedarpy, which is not installed"
        raise InvalidInputError(
            message, hint=INSTALL_POLICY, code=ErrorCode.NOT_INSTALLED
        ) from cause
    return cedarpy


def _rule_error(name: str, rule: PolicyRule, fault: str) -> InvalidInputError:
    # Cedar numbers the rules of each text that it is given, and it was given this one alone.
    fault = re.sub(r"^(Policy parse error: |for policy `policy0`, )", "", fault)
    message = f"{name}:{rule.line}: {rule.name} is not valid: {fault}"
    hint = "see docs/policy.md for what rules can name"
    return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_POLICY, line=rule.line)
