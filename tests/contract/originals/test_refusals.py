"""What an import refuses by name, because no sample of a Rust release shows it."""

import json
import shutil
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.errors import ErrorCode, FormatError, NotFoundError, OmnigraphError
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.layout import MANIFEST, SCHEMA_TEXT, STAMP
from tests.support.originals import BRANCHES, answers, files, ours, theirs, unpack


@pytest.fixture
def source(tmp_path):
    return unpack("0.7.2/graph", tmp_path)


def restamp(root: Path, stamp: str | None) -> None:
    lance.dataset(str(root / MANIFEST)).update_schema_metadata({STAMP: stamp})


def refused(source: Path, tmp_path: Path) -> FormatError:
    before = files(source)
    with pytest.raises(FormatError) as error:
        omnigraph.import_original(source, tmp_path / "ours.omni")
    assert error.value.hint
    assert files(source) == before
    with pytest.raises(NotFoundError):
        omnigraph.open(tmp_path / "ours.omni")
    return error.value


def test_internal_schema_2_is_imported_as_3_without_staging_branches(source, tmp_path):
    """The two differ in branches `__run__…`, which 3 deleted."""
    restamp(source, "2")
    lance.dataset(str(source / MANIFEST)).create_branch("__run__01M7R94DD7B31FZPVFTZRTQM81")
    omnigraph.import_original(source, tmp_path / "ours.omni")
    graph = omnigraph.open(tmp_path / "ours.omni")
    assert sorted(graph.branches.list()) == sorted(BRANCHES)
    for branch in BRANCHES:
        target = tmp_path / "rows.jsonl"
        graph.at(branch=branch).export(target, replace=True)
        recorded = theirs(answers("0.7.2")["branches"][branch])
        assert ours(target.read_text().splitlines()) == recorded


@pytest.mark.parametrize(
    ("stamp", "name"),
    [("1", "Rust release 0.3"), ("6", "Rust release 0.9 or 0.10"), ("11", "unknown Rust release")],
)
def test_internal_schemas_without_a_sample_are_refused_by_name(source, stamp, name, tmp_path):
    restamp(source, stamp)
    error = refused(source, tmp_path)
    assert name in error.message
    assert f"internal schema {stamp}" in error.message
    with pytest.raises(FormatError, match="internal schema") as opened:
        omnigraph.open(source)
    assert "cannot be imported" in str(opened.value.hint)


def test_a_manifest_without_a_stamp_is_internal_schema_1(source, tmp_path):
    restamp(source, None)
    assert "internal schema 1" in refused(source, tmp_path).message


def test_an_interrupted_schema_change_is_refused(source, tmp_path):
    shutil.copy(source / SCHEMA_TEXT, source / f"{SCHEMA_TEXT}.staging")
    assert "schema change that was interrupted" in refused(source, tmp_path).message


CHANGES = {
    "a property that was added since": ("people: I64?", "people: I64?\n  area: F64?", "area"),
    "a property that was dropped since": ("  height: F64?\n", "", "height"),
    "a property of another type": ("age: I32?", "age: I64?", "age is int32"),
    "a type that was added since": ("node City {", "node Town { k: String @key }\nnode City {", ""),
}


@pytest.mark.parametrize(("old", "new", "said"), CHANGES.values(), ids=CHANGES)
def test_a_history_with_another_schema_is_refused(source, old, new, said, tmp_path):
    text = (source / SCHEMA_TEXT).read_text()
    assert old in text
    (source / SCHEMA_TEXT).write_text(text.replace(old, new))
    assert said in refused(source, tmp_path).message


def test_an_interrupted_write_whose_table_moved_twice_is_refused(tmp_path):
    source = unpack("0.8.0-interrupted/interrupted-1", tmp_path)
    (sidecar,) = (source / "__recovery").iterdir()
    record = json.loads(sidecar.read_text())
    location = "/".join(record["tables"][0]["table_path"].split("/")[-2:])
    lance.dataset(str(source / location)).delete("false")
    error = refused(source, tmp_path)
    assert record["operation_id"] in error.message


def test_a_sidecar_of_a_published_write_is_ignored(tmp_path):
    """A release that is killed after its publish leaves one; its tables are at their pins."""
    source = unpack("0.8.0/graph", tmp_path)
    old = unpack("0.8.0-interrupted/interrupted-1", tmp_path / "other")
    (sidecar,) = (old / "__recovery").iterdir()
    record = json.loads(sidecar.read_text())
    place = f"{source}/nodes/2468b69d10791c82"
    pin = {"expected_version": 5, "post_commit_pin": 6}
    record["tables"] = [{"table_key": "node:City", "table_path": place, **pin}]
    (source / "__recovery").mkdir(exist_ok=True)
    (source / "__recovery" / sidecar.name).write_text(json.dumps(record))

    result = omnigraph.import_original(source, tmp_path / "ours.omni")

    assert result.recovered == {}
    assert len(omnigraph.open(tmp_path / "ours.omni").commits.list()) == 8


def test_rows_that_no_commit_records_are_refused(source, tmp_path):
    """A release up to 0.7 that was killed between its publish and the record of its commit."""
    commits = lance.dataset(str(source / "_graph_commits.lance"))
    newest = max(row["manifest_version"] for row in commits.to_table().to_pylist())
    commits.delete(f"manifest_version = {newest}")
    assert "no commit records" in refused(source, tmp_path).message


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (str(CURRENT + 1), ErrorCode.FORMAT_TOO_NEW),
        (str(CURRENT - 1), ErrorCode.FORMAT_TOO_OLD),
        ("soon", ErrorCode.CORRUPTED),
        (None, ErrorCode.CORRUPTED),
    ],
)
def test_stamps_of_ours_have_a_floor_and_a_ceiling(text, code, read_only, tmp_path):
    root = tmp_path / "graph.omni"
    omnigraph.init(root, "node A { k: String @key }")
    restamp(root, text)
    before = files(root)
    with pytest.raises(FormatError) as error:
        omnigraph.open(root, read_only=read_only)
    assert error.value.code is code
    assert error.value.hint
    assert files(root) == before


def test_a_branch_of_a_newer_format_is_refused(tmp_path):
    root = tmp_path / "graph.omni"
    graph = omnigraph.init(root, "node A { k: String @key }")
    ref = graph.branches.create("draft").snapshot().ref
    place = root / MANIFEST / "tree" / str(ref)
    lance.dataset(str(place)).update_schema_metadata({STAMP: str(CURRENT + 1)})
    with pytest.raises(FormatError, match=f"reads up to {CURRENT}"):
        omnigraph.open(root).snapshot(branch="draft")
    with pytest.raises(OmnigraphError, match=f"reads up to {CURRENT}"):
        omnigraph.open(root).at(branch="draft").mutate('query q() { insert A { k: "x" } }')
    assert omnigraph.open(root).snapshot().head == graph.snapshot().head
