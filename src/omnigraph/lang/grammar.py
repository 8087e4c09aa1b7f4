"""The interface to lark: parses a text with a grammar to a tree or a readable diagnostic."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final, cast

from lark import Lark, Token, Tree
from lark import __version__ as lark_version
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr
from lark.utils import TextSlice

from omnigraph import caches
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.source import Source, Span

TEXT_LENGTH_MAX: Final = 1 << 20
"""Characters of one schema or query file."""

NESTING_MAX: Final = 64
"""Brackets open at once. The functions that walk a tree recurse; handwritten text is shallower."""

OPERATORS_MAX: Final = 64
"""Operators inside each other, also without brackets: a sum of many terms is such a tree."""

_OPTIONS: Final[dict[str, Any]] = {
    "parser": "lalr",
    "lexer": "contextual",
    "maybe_placeholders": False,
    "propagate_positions": True,
}

_EXPECTED_MAX: Final = 10
_QUOTED_MAX: Final = 40

# An unclosed string or comment extends to the end, so the scan is linear for every text.
_LEXEME: Final = re.compile(
    r"""
      (?P<skipped>  //[^\r\n]*+ | /\*.*?(?:\*/|\Z) | \#[^\r\n]*+
                  | "(?:[^"\\]|\\.)*+(?:"|\\?\Z) )
    | (?P<word>     [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<open>     [{(\[] )
    | (?P<close>    [})\]] )
    | (?P<other>    [^\s] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_PAIR: Final = re.compile("([\ud800-\udbff])([\udc00-\udfff])")


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language's grammar file, and the wording of its syntax errors.

    Attributes:
        package: The package that holds `grammar.lark`.
        code: The code of a syntax error.
        terminals: The description of each terminal that is a pattern: `{"TYPE": "a type name"}`.
        hints: The hint for each text that is often found in a wrong place.
        operators: The rules of operators, which nest without brackets.
    """

    package: str
    code: str
    terminals: Mapping[str, str]
    hints: Mapping[str, str]
    operators: frozenset[str] = frozenset()

    def parse(self, source: Source, within: Span) -> Tree[Token] | Diagnostic:
        """The tree of one span of a text that `admit` accepts, or the first syntax error in it.

        Positions in the tree count from the start of the whole text.
        """
        lark = _lark(self.package)
        try:
            tree = lark.parse(TextSlice(source.text, within.start, within.end))
        except UnexpectedInput as error:
            return self._diagnostic(error, source, within)
        return self._too_deep(tree) or tree

    def _too_deep(self, tree: Tree[Token]) -> Diagnostic | None:
        """The error of operators that nest too deep, without recursion."""
        left = [(tree, 0)]
        while left:
            part, depth = left.pop()
            depth += part.data in self.operators
            if depth > OPERATORS_MAX:
                message = f"operators nest deeper than {OPERATORS_MAX}"
                return Diagnostic(self.code, span_of(part), message)
            left += [(child, depth) for child in part.children if isinstance(child, Tree)]
        return None

    def admit(self, source: Source) -> tuple[Diagnostic, ...]:
        """Errors that prevent parsing: a text too long, not Unicode, or nested too deep."""
        if len(source.text) > TEXT_LENGTH_MAX:
            message = f"the text is longer than {TEXT_LENGTH_MAX} characters"
            return (Diagnostic(self.code, Span(0, 0), message),)
        if half := _SURROGATE.search(source.text):
            message = "half of a surrogate pair is not a character"
            return (Diagnostic(self.code, Span(*half.span()), message),)
        depth = 0
        for lexeme in lexemes(source.text):
            depth = max(0, depth + (lexeme.lastgroup == "open") - (lexeme.lastgroup == "close"))
            if depth > NESTING_MAX:
                message = f"brackets nest deeper than {NESTING_MAX}"
                return (Diagnostic(self.code, Span(*lexeme.span()), message),)
        return ()

    def _diagnostic(self, error: UnexpectedInput, source: Source, within: Span) -> Diagnostic:
        match error:
            case UnexpectedToken(token=Token(type="$END") as token):
                end = within.start if token.end_pos is None else token.end_pos
                span, unexpected = Span(end, end), "end"
                expected = set(error.accepts or error.expected)
            case UnexpectedToken(token=Token() as token):
                span = span_of(token)
                unexpected = _quote(source.at(span))
                expected = set(error.accepts or error.expected)
            case UnexpectedCharacters():
                # The lexer always knows its position, although lark's base class types it optional.
                at = cast("int", error.pos_in_stream)
                span = Span(at, at + 1)
                unexpected = _quote(source.at(span))
                expected = set(error.allowed or ())
            case _:
                raise AssertionError(error)
        if message := _unclosed_message(source.text, span.start, error):
            return Diagnostic(self.code, span, message)
        message = f"unexpected {unexpected}"
        words = self._sentence_words(expected)
        if words and len(words) <= _EXPECTED_MAX:
            message += f"; expected {_either(words)}"
        return Diagnostic(self.code, span, message, self._hint(source.at(span)))

    def _sentence_words(self, expected: set[str]) -> list[str]:
        patterns = {terminal.name: terminal.pattern for terminal in _lark(self.package).terminals}
        words = set()
        for name in expected:
            pattern = patterns.get(name)
            literal = f"'{pattern.value}'" if isinstance(pattern, PatternStr) else name.lower()
            words.add(self.terminals.get(name, literal))
        # Words before punctuation, each in alphabetical order.
        return sorted(words, key=lambda word: (word.startswith("'"), word))

    def _hint(self, unexpected: str) -> str:
        if unexpected.startswith("#"):
            return "a comment starts with // or stands between /* and */"
        return self.hints.get(unexpected, "")


def lexemes(text: str) -> Iterator[re.Match[str]]:
    """The words and signs of a text outside strings and comments.

    Each match's `lastgroup` is `word`, `open`, `close` or `other`. This coarse scan never fails,
    also for a text that does not parse. A `#` starts a comment here, although the grammars have
    none, so that the text after it is not taken for a declaration.

    >>> [each.group() for each in lexemes('node A { /* } */ "{"')]
    ['node', 'A', '{']
    """
    return (match for match in _LEXEME.finditer(text) if match.lastgroup != "skipped")


def span_of(part: Token | Tree[Token]) -> Span:
    """The span of a token, or of all tokens of a rule; the rule must match at least one."""
    where = part.meta if isinstance(part, Tree) else part
    assert where.start_pos is not None, "lark gives every token it lexes a position"
    assert where.end_pos is not None, "lark gives every token it lexes a position"
    return Span(where.start_pos, where.end_pos)


def unescape(token: Token, code: str) -> str | Diagnostic:
    r"""The value of a quoted string, or the error in one of its escapes.

    Two `\u` escapes that form a surrogate pair are one character.
    """
    start = span_of(token).start + 1
    inner = token[1:-1]
    if "\\" not in inner:
        return inner
    for escape in _ESCAPE.finditer(inner):
        if len(escape[1]) == 1 and escape[1] not in _ESCAPED:
            span = Span(start + escape.start(), start + escape.end())
            hint = r"the escapes are \" \\ \n \r \t \uXXXX"
            return Diagnostic(code, span, f"unknown escape {_quote(escape.group())}", hint)
    text = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1]) or chr(int(escape[1][1:], 16)), inner)
    text = _SURROGATE_PAIR.sub(lambda pair: _join_surrogates(pair.group()), text)
    if _SURROGATE.search(text):
        return Diagnostic(code, span_of(token), "the string has half of a surrogate pair")
    return text


@cache
def _lark(package: str) -> Lark:
    """The parser of a grammar file; its tables take long to make, and are in the user's cache."""
    text = files(package).joinpath("grammar.lark").read_text(encoding="utf-8")
    name = f"{package}.tables"
    key = "\n".join([lark_version, sys.version, repr(_OPTIONS), text]).encode()
    if tables := caches.recall(name, key):
        return Lark.load(BytesIO(tables))
    lark = Lark(text, **_OPTIONS)
    made = BytesIO()
    lark.save(made)
    caches.keep(name, key, made.getvalue())
    return lark


def _unclosed_message(text: str, at: int, error: UnexpectedInput) -> str | None:
    if isinstance(error, UnexpectedToken):
        return None
    # The lexer accepts strings and comments everywhere, so it fails at one only if it is unclosed.
    if text.startswith('"', at):
        return "the string that starts here is never closed"
    if text.startswith("/*", at):
        return "the comment that starts here is never closed"
    return None


def _join_surrogates(pair: str) -> str:
    return pair.encode("utf-16", "surrogatepass").decode("utf-16")


def _quote(text: str) -> str:
    shown = text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}…"
    return f"'{shown}'" if shown.isprintable() else ascii(shown)


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
