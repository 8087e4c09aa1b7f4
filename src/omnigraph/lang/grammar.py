"""Grammar plumbing: a text and a lark grammar in, a tree or a readable diagnostic out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr
from lark.utils import TextSlice

from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.source import Source, Span

TEXT_LENGTH_MAX: Final = 1 << 20
"""Characters of one schema or query file."""

NESTING_MAX: Final = 64
"""Brackets open at once. What walks a tree recurses, and nobody reads deeper ones."""

_EXPECTED_MAX: Final = 8
_QUOTED_MAX: Final = 40

# A string or a comment that is never closed runs to the end: the text is read once, whatever it is.
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
    """One language's grammar file, and the words its syntax errors are told in.

    Attributes:
        package: The package that holds `grammar.lark`.
        code: The code of a syntax error.
        terminals: What to call each terminal that is a pattern: `{"TYPE": "a type name"}`.
        hints: What to advise when this text is found where it may not stand.
    """

    package: str
    code: str
    terminals: Mapping[str, str]
    hints: Mapping[str, str]

    def parse(self, source: Source, within: Span) -> Tree[Token] | Diagnostic:
        """The tree of one span of a text that `admit` has passed; or the first syntax error in it.

        Positions in the tree count from the start of the whole text.
        """
        lark = _lark(self.package)
        try:
            return lark.parse(TextSlice(source.text, within.start, within.end))
        except UnexpectedInput as error:
            return self._diagnostic(error, source, within)

    def admit(self, source: Source) -> tuple[Diagnostic, ...]:
        """Why a text is not even read: too long, not Unicode, or nested too deep."""
        if len(source.text) > TEXT_LENGTH_MAX:
            message = f"the text is longer than {TEXT_LENGTH_MAX} characters"
            return (Diagnostic(self.code, Span(0, 0), message),)
        if half := _SURROGATE.search(source.text):
            message = "half of a surrogate pair is not a character"
            return (Diagnostic(self.code, Span(*half.span()), message),)
        depth = 0
        for each in lexemes(source.text):
            depth = max(0, depth + (each.lastgroup == "open") - (each.lastgroup == "close"))
            if depth > NESTING_MAX:
                message = f"brackets nest deeper than {NESTING_MAX}"
                return (Diagnostic(self.code, Span(*each.span()), message),)
        return ()

    def _diagnostic(self, error: UnexpectedInput, source: Source, within: Span) -> Diagnostic:
        match error:
            case UnexpectedToken(token=Token(type="$END") as token):
                end = within.start if token.end_pos is None else token.end_pos
                span, found = Span(end, end), "end"
                expected = set(error.accepts or error.expected)
            case UnexpectedToken(token=Token() as token):
                span = span_of(token)
                found = _quoted(source.at(span))
                expected = set(error.accepts or error.expected)
            case UnexpectedCharacters():
                # Where the lexer stumbles it knows its position, whatever lark's base class says.
                at = cast("int", error.pos_in_stream)
                span = Span(at, at + 1)
                found = _quoted(source.at(span))
                expected = set(error.allowed or ())
            case _:
                raise AssertionError(error)
        if unclosed := _unclosed(source.text, span.start, error):
            return Diagnostic(self.code, span, unclosed)
        message = f"unexpected {found}"
        if expected and len(expected) <= _EXPECTED_MAX:
            message += f"; expected {_either(self._sentence_words(expected))}"
        return Diagnostic(self.code, span, message, self._hint(source.at(span)))

    def _sentence_words(self, expected: set[str]) -> list[str]:
        patterns = {each.name: each.pattern for each in _lark(self.package).terminals}
        words = set()
        for name in expected:
            pattern = patterns.get(name)
            literal = f"'{pattern.value}'" if isinstance(pattern, PatternStr) else name.lower()
            words.add(self.terminals.get(name, literal))
        # Words before punctuation, each in alphabetical order.
        return sorted(words, key=lambda word: (word.startswith("'"), word))

    def _hint(self, found: str) -> str:
        if found.startswith("#"):
            return "a comment starts with // or stands between /* and */"
        return self.hints.get(found, "")


def lexemes(text: str) -> Iterator[re.Match[str]]:
    """The words and signs of a text that stand outside strings and comments.

    Each match's `lastgroup` is `word`, `open`, `close` or `other`. This is a coarse reading that
    never fails, for finding one's way in a text that may not parse; a `#` starts a comment here,
    so that what follows a wrong one is not taken for a declaration.

    >>> [each.group() for each in lexemes('node A { /* } */ "{"')]
    ['node', 'A', '{']
    """
    return (each for each in _LEXEME.finditer(text) if each.lastgroup != "skipped")


def span_of(part: Token | Tree[Token]) -> Span:
    """The span of a token, or of all that a rule matched; the rule must match something."""
    where = part.meta if isinstance(part, Tree) else part
    assert where.start_pos is not None, "lark gives every token it lexes a position"
    assert where.end_pos is not None, "lark gives every token it lexes a position"
    return Span(where.start_pos, where.end_pos)


def unescape(token: Token, code: str) -> str | Diagnostic:
    r"""The text that a quoted string means, or what is wrong with one of its escapes.

    Two `\u` escapes that form a surrogate pair are one character.
    """
    start = span_of(token).start + 1
    inner = token[1:-1]
    if "\\" not in inner:
        return inner
    for each in _ESCAPE.finditer(inner):
        if len(each[1]) == 1 and each[1] not in _ESCAPED:
            span = Span(start + each.start(), start + each.end())
            hint = r"the escapes are \" \\ \n \r \t \uXXXX"
            return Diagnostic(code, span, f"unknown escape {_quoted(each.group())}", hint)
    text = _ESCAPE.sub(lambda each: _ESCAPED.get(each[1]) or chr(int(each[1][1:], 16)), inner)
    text = _SURROGATE_PAIR.sub(lambda pair: _joined(pair.group()), text)
    if _SURROGATE.search(text):
        return Diagnostic(code, span_of(token), "the string has half of a surrogate pair")
    return text


@cache
def _lark(package: str) -> Lark:
    text = files(package).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        propagate_positions=True,
    )


def _unclosed(text: str, at: int, error: UnexpectedInput) -> str | None:
    if isinstance(error, UnexpectedToken):
        return None
    # The lexer knows strings and comments everywhere, so it stumbles on one only if it never ends.
    if text.startswith('"', at):
        return "the string that starts here is never closed"
    if text.startswith("/*", at):
        return "the comment that starts here is never closed"
    return None


def _joined(pair: str) -> str:
    return pair.encode("utf-16", "surrogatepass").decode("utf-16")


def _quoted(text: str) -> str:
    shown = text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}…"
    return f"'{shown}'" if shown.isprintable() else ascii(shown)


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
