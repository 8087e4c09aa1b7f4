"""Graph URIs: what each spelling means, and which are refused."""

import pickle
from pathlib import Path

import pytest

from omnigraph.errors import ErrorCode, InvalidInputError, InvalidParameterError
from omnigraph.storage.roots import Root


@pytest.mark.parametrize(
    ("text", "uri"),
    {
        "/data/graph": "/data/graph",
        "/data/graph/": "/data/graph",
        "/data//graph": "/data/graph",
        "/data/my graph": "/data/my graph",
        "/data/100%": "/data/100%",
        "/data/a%20b": "/data/a%20b",
        "/data/ünï": "/data/ünï",
        "/data/a#b": "/data/a#b",
        "file:///data/graph": "/data/graph",
        "file:///data/graph/": "/data/graph",
        "file://localhost/data/graph": "/data/graph",
        "FILE:///data/graph": "/data/graph",
        "file:/data/graph": "/data/graph",
        "/data/file:/graph": "/data/file:/graph",
        "file:///data/my%20graph": "/data/my graph",
        "file:///data/%C3%BCn%C3%AF": "/data/ünï",
        "file:///data/ünï": "/data/ünï",
        "file:///data/100%25": "/data/100%",
        "file:///data/a%23b": "/data/a#b",
        "s3://lake/graph": "s3://lake/graph",
        "s3://lake/graphs/social/": "s3://lake/graphs/social",
        "S3://lake/graph": "s3://lake/graph",
        "s3://lake/my graph": "s3://lake/my graph",
        "s3://my.lake-1/ünï": "s3://my.lake-1/ünï",
        "s3://lake/...": "s3://lake/...",
    }.items(),
)
def test_a_root_has_one_spelling_and_it_is_read_back_as_itself(text, uri):
    root = Root.parse(text)

    assert root.uri == uri
    assert Root.parse(root.uri) == root
    assert pickle.loads(pickle.dumps(root)) == root


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a\0b",
        "a\nb",
        "a\x7fb",
        "a\udcffb",
        "~no such user/graph",
        "file://",
        "file://elsewhere/data",
        "file:data",
        "file:",
        "file:///data/a#b",
        "file:///data/a?b",
        "file:///data/a%3Fb",
        "/data/a?b",
        "file:///data/a%00b",
        "file:///data/a%0Ab",
        "s3://",
        "s3:/lake/graph",
        "s3://lake",
        "s3://lake/",
        "s3:///graph",
        "s3://Lake/graph",
        "s3://la_ke/graph",
        "s3://lake/a//b",
        "s3://lake/a%20b",
        "s3://lake/a#b",
        "s3://lake/a?b",
        "s3://lake/.",
        "s3://lake/../other",
        "s3://lake/a/../b",
        "s3a://lake/graph",
        "gs://lake/graph",
        "https://example.org/graph",
    ],
)
def test_a_uri_that_names_no_place_or_two_is_refused(text):
    with pytest.raises(InvalidInputError) as refused:
        Root.parse(text)

    assert refused.value.code is ErrorCode.INVALID_URI
    assert "s3://bucket/prefix" in refused.value.hint


@pytest.mark.parametrize("place", [None, 3, b"/data/graph", ["/data/graph"], True])
def test_only_a_text_or_a_path_is_a_place(place):
    with pytest.raises(InvalidParameterError, match="the graph's place must be a text or a path"):
        Root.parse(place)


def test_a_bucket_as_a_path_has_lost_a_slash_and_is_no_directory():
    with pytest.raises(InvalidInputError, match="does not name a bucket"):
        Root.parse(Path("s3://lake/graph"))


def test_a_relative_path_starts_where_the_process_stands():
    assert Root.parse("graph").uri == str(Path.cwd() / "graph")
    assert Root.parse(Path("graph")) == Root.parse("./graph")


def test_a_tilde_is_the_home_directory():
    assert Root.parse("~/graph").uri == str(Path.home() / "graph")


def test_only_a_root_with_a_bucket_is_remote():
    assert Root.parse("/data").is_local
    remote = Root.parse("s3://lake/a/b")
    assert (remote.is_local, remote.bucket, remote.prefix) == (False, "lake", "a/b")


def test_a_table_lies_below_its_root():
    assert Root.parse("/data").table_uri("nodes/1") == "/data/nodes/1"
    assert Root.parse("s3://lake/a").table_uri("nodes/1") == "s3://lake/a/nodes/1"
