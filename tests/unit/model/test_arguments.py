"""Arguments: what they have to be, and how they are refused."""

from pathlib import Path

import numpy as np
import pytest

from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import (
    checked_names,
    checked_number,
    checked_path,
    checked_text,
    checked_texts,
    misfit,
)


class OfBytes:
    """A path as an old library has it."""

    def __fspath__(self) -> bytes:
        return b"graph.omni"


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checked_text, None),
        (checked_text, b"ada"),
        (checked_text, 3),
        (checked_path, None),
        (checked_path, b"graph.omni"),
        (checked_path, OfBytes()),
        (checked_number, None),
        (checked_number, "3"),
        (checked_number, 3.0),
        (checked_number, True),
        (checked_texts, 3),
        (checked_texts, b"Person"),
        (checked_texts, ["Person", 3]),
        (checked_names, ["Ada"]),
        (checked_names, "Ada"),
        (checked_names, {1: "Ada"}),
    ],
)
def test_what_is_of_another_kind_is_refused_by_its_name(check, value):
    with pytest.raises(InvalidParameterError, match=r"(of|in|^) ?given has to be a "):
        check(value, "given")


def test_what_is_of_its_kind_is_given_back():
    assert checked_text("", "given") == ""
    assert [checked_number(each, "given") for each in (0, -3, np.int64(5))] == [0, -3, 5]
    assert [checked_texts(each, "given") for each in ("ab", ["a"], iter("ab"), (), None)] == [
        *(("ab",), ("a",), ("a", "b"), (), None),
    ]
    assert [checked_path(each, "given") for each in ("a", Path("a"))] == ["a", Path("a")]
    assert checked_names({"a": 1}, "given") == {"a": 1}
    assert checked_names(None, "given") == {}


def test_a_refusal_is_one_line_however_long_the_value():
    refused = misfit("two\nlines " * 10_000, "given", "short")

    assert len(str(refused)) < 200
    assert "\n" not in misfit(np.zeros((3, 3)), "given", "a text").message
