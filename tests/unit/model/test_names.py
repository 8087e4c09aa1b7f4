"""Branch and type names: what is refused, and that nothing refused slips through."""

import pytest

from omnigraph.errors import ErrorCode, InvalidNameError
from omnigraph.limits import TYPE_NAME_LENGTH_MAX
from omnigraph.model.names import BRANCH_NAME_LENGTH_MAX, MAIN, BranchName, TagName, TypeName

LONGEST = "a" * BRANCH_NAME_LENGTH_MAX


@pytest.mark.parametrize(
    "text",
    [
        "main",
        "draft",
        "Main",
        "mainly",
        "mainly/x",
        "review/1",
        "a/b/c/d",
        "a.b",
        "a_b",
        "_a",
        "a__b",
        "a/__b",
        "a-",
        "a/-b",
        "1",
        "a.",
        "lock",
        "a.lock.b",
        "a.locks",
        "é",
        "日本語/枝",
        "ветка",
        "HEAD",
        LONGEST,
        "é" * (BRANCH_NAME_LENGTH_MAX // 10),
    ],
)
def test_a_good_branch_name_is_kept_as_it_is(text):
    name = BranchName.parse(text)

    assert name == text
    assert type(name) is BranchName


@pytest.mark.parametrize(
    ("text", "why"),
    {
        "": "empty",
        "/": "empty part",
        "/a": "empty part",
        "a/": "empty part",
        "a//b": "empty part",
        ".": "start with '.'",
        "..": "'..'",
        "a..b": "'..'",
        "a/../b": "'..'",
        ".a": "start with '.'",
        "a/.b": "start with '.'",
        "a.lock": "'.lock'",
        "a.lock/b": "'.lock'",
        "-a": "options",
        "-a/b": "options",
        "__a": "internal",
        "__run__1": "internal",
        "__": "internal",
        "__a/b": "internal",
        "main/x": "reserved",
        "a b": "character",
        " ": "character",
        "a\n": "character",
        "a\tb": "character",
        "a\0b": "character",
        "a\\b": "character",
        "a@b": "character",
        "a:b": "character",
        "a%2Fb": "character",
        "a~b": "character",
        "a*": "character",
        "a'b": "character",
        "a\u200bb": "character",
        "e\u0301": "character",
        "😀": "character",
        "\ud800": "character",
        "a\u2215b": "character",
        "\uff0e\uff0e": "character",
        LONGEST + "a": "longer",
        "é" * (BRANCH_NAME_LENGTH_MAX // 10 + 1): "longer",
        "語" * 66: "longer",
        "a/" * 99 + "a": "longer",
    }.items(),
)
def test_a_bad_branch_name_is_refused_with_the_reason(text, why):
    with pytest.raises(InvalidNameError) as refused:
        BranchName.parse(text)

    assert why in refused.value.message
    assert refused.value.code is ErrorCode.INVALID_NAME
    assert refused.value.details == {"name": text}


def test_a_refusal_does_not_repeat_a_novel():
    with pytest.raises(InvalidNameError) as refused:
        BranchName.parse("a " * 100_000)

    assert len(str(refused.value)) < 500


def test_lance_spells_main_as_none():
    assert (MAIN.is_main, BranchName("draft").is_main) == (True, False)


def test_a_name_contains_what_lies_below_it_by_path():
    review = BranchName("review")

    assert review.contains("review/x")
    assert review.contains("review/x/y")
    assert not review.contains("review")
    assert not review.contains("reviews/x")
    assert not BranchName("review/x").contains("review")


@pytest.mark.parametrize("text", ["A", "Person", "P2", "P_", "HTTPServer", "A" * 128])
def test_a_good_type_name_is_kept_as_it_is(text):
    assert TypeName.parse(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "person",
        "_Person",
        "2P",
        "Per son",
        "Person\n",
        "Pérson",
        "Élan",
        "Per-son",
        "Per:son",
        "A٣",
        "A" * (TYPE_NAME_LENGTH_MAX + 1),
        "\ud800",
    ],
)
def test_a_bad_type_name_is_refused(text):
    with pytest.raises(InvalidNameError) as refused:
        TypeName.parse(text)

    assert refused.value.details == {"name": text}


@pytest.mark.parametrize("text", ["v1", "release/1.0", "Ünï", "é" * 20, "mainly", "01arz3"])
def test_a_good_tag_name_is_kept_as_it_is(text):
    assert TagName.parse(text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    {
        "": "empty",
        "a b": "not allowed",
        "a=b": "not allowed",
        "a//b": "empty part",
        "-v": "starts with '-'",
        "__x": "internal",
        "x.lock": "'.lock'",
        "main": "a branch of that name",
        "main/x": "reserved",
        "a" * (BRANCH_NAME_LENGTH_MAX + 1): "longer than",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV": "form of a commit id",
        "01arz3ndektsv4rrffq69g5fav": "form of a commit id",
    }.items(),
)
def test_a_bad_tag_name_is_refused_with_the_reason(text, why):
    with pytest.raises(InvalidNameError, match="is not a tag name") as refused:
        TagName.parse(text)
    assert why in refused.value.message
