"""Import of graphs whose release has removed old versions of tables, or of the manifest."""

import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph import CommitLetGoError
from omnigraph.errors import FormatError
from omnigraph.manifest.layout import MANIFEST
from tests.support.crashes import cut_off, trace
from tests.support.originals import ours, outcome, recovered_commits, shown, theirs, unpack

PERSON = "nodes/40d76f1f51639ec0"


def remove_old_versions(root: Path, location: str) -> None:
    table = lance.dataset(str(root / location))
    table.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)


@pytest.fixture(params=[PERSON, MANIFEST])
def source(request, tmp_path):
    """A graph of five commits, of which the newest is readable; its write was rolled back."""
    root = unpack("0.8.0-interrupted/interrupted-2", tmp_path)
    remove_old_versions(root, request.param)
    return root


def test_commits_whose_rows_were_removed_are_in_the_history(source, tmp_path):
    omnigraph.import_original(source, tmp_path / "ours.omni")

    graph = omnigraph.open(tmp_path / "ours.omni")
    recovery, *listed = graph.commits.list()
    assert list(map(shown, listed)) == recovered_commits(2)[:5][::-1]
    newest, *older = listed
    for commit in older:
        with pytest.raises(CommitLetGoError, match="a cleanup before the import"):
            graph.snapshot(commit=commit.commit_id)
    graph.export(tmp_path / "rows.jsonl")
    rows = ours((tmp_path / "rows.jsonl").read_text().splitlines())
    after = theirs(outcome(2)["rows_after"])
    assert rows == frozenset(row for row in after if "next" not in row[1])
    for commit in (newest, recovery):
        assert graph.snapshot(commit=commit.commit_id).head == commit
    report = graph.check(history=True)
    assert report.findings == ()
    graph.mutate('query q() { insert City { name: "next" } }')
    assert graph.check(history=True).findings == ()


def test_import_of_a_cleaned_graph_is_continued(source, tmp_path):
    importing = partial(omnigraph.import_original, source)
    passes = trace(lambda: importing(tmp_path / "whole.omni"))
    for place, cut in enumerate(passes):
        target = tmp_path / f"{place}.omni"
        cut_off(cut, partial(importing, target))
        importing(target)
        graph = omnigraph.open(target)
        assert len(graph.commits.list()) == 6
        assert graph.check(history=True).findings == ()
        shutil.rmtree(target)


def test_branch_that_starts_at_a_removed_commit_is_refused_by_name(tmp_path):
    source = unpack("0.8.0/graph", tmp_path)
    version = 5
    (source / PERSON / "_versions" / f"{(1 << 64) - 1 - version:020}.manifest").unlink()
    with pytest.raises(FormatError, match="branch draft starts at commit"):
        omnigraph.import_original(source, tmp_path / "ours.omni")
