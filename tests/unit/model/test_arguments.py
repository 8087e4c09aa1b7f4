"""Arguments: what they have to be, and how they are refused."""

from pathlib import Path

import numpy as np
import pytest

from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import (
    misfit_error,
    require_names,
    require_number,
    require_path,
    require_text,
    require_texts,
)


class OfBytes:
    """A path as an old library has it."""

    def __fspath__(self) -> bytes:
        return b"graph.omni"


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (require_text, None),
        (require_text, b"ada"),
        (require_text, 3),
        (require_path, None),
        (require_path, b"graph.omni"),
        (require_path, OfBytes()),
        (require_number, None),
        (require_number, "3"),
        (require_number, 3.0),
        (require_number, True),
        (require_texts, 3),
        (require_texts, b"Person"),
        (require_texts, ["Person", 3]),
        (require_names, ["Ada"]),
        (require_names, "Ada"),
        (require_names, {1: "Ada"}),
    ],
)
def test_what_is_of_another_kind_is_refused_by_its_name(check, value):
    with pytest.raises(InvalidParameterError, match=r"(of|in|^) ?given must be a "):
        check(value, "given")


def test_what_is_of_its_kind_is_given_back():
    assert require_text("", "given") == ""
    assert [require_number(each, "given") for each in (0, -3, np.int64(5))] == [0, -3, 5]
    assert [require_texts(each, "given") for each in ("ab", ["a"], iter("ab"), (), None)] == [
        *(("ab",), ("a",), ("a", "b"), (), None),
    ]
    assert [require_path(each, "given") for each in ("a", Path("a"))] == ["a", Path("a")]
    assert require_names({"a": 1}, "given") == {"a": 1}
    assert require_names(None, "given") == {}


def test_a_refusal_is_one_line_however_long_the_value():
    refused = misfit_error("two\nlines " * 10_000, "given", "short")

    assert len(str(refused)) < 200
    assert "\n" not in misfit_error(np.zeros((3, 3)), "given", "a text").message
