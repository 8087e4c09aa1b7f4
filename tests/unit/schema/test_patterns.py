from __future__ import annotations

import pytest

from omnigraph.schema.patterns import pattern_fault


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
        r"^\+?[0-9 ]{7,15}$",
        r"(?i)^(foo|bar)s?$",
        r"(?:ab)*?c+?",
        r"\d{4}-\d{2}",
        r"[^\]\[\\]",
        r"\x41\t\.",
        "é+",
        "a}",
        r"^([a-z]{1,63}\.){1,8}[a-z]{2,63}$",
        "/",
    ],
)
def test_a_pattern_all_engines_share_is_accepted(pattern):
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[",
        "*a",
        "a**",
        "a*+",
        "a{2}{3}",
        "a{,3}",
        "{",
        "a{3,2}",
        "a{1001}",
        "(a{100}){100}",
        "((a{11}){10}){10}",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a)",
        "(?P<n>a)",
        "(?<n>a)",
        "(?x)a b",
        "a(?i)b",
        r"(a)\1",
        r"\p{L}",
        r"\Aa\Z",
        r"\z",
        r"\v",
        r"\u0041",
        r"\Qa\E",
        r"\h",
        "[]a]",
        "[]",
        "[a[b]]",
        "[[:alpha:]]",
        "[a&&b]",
        "[a--b]",
        "[z-a]",
        r"[\b]",
        "\\",
        "(" * 60 + ")" * 60,
        "a" * 2000,
        "\ud800",
    ],
)
def test_a_pattern_engines_read_differently_is_refused(pattern):
    assert pattern_fault(pattern)
