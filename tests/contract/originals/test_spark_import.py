"""Imported graphs through Spark: every branch and commit, with the rows that are recorded."""

import json
import shutil

import pytest

import omnigraph
from tests.support.originals import (
    BRANCHES,
    answers,
    ours,
    recorded_commits,
    rows_by_commit,
    theirs,
    unpack,
)

TYPES = ("City", "Paper", "Person", "Knows", "LivesIn", "Wrote")


@pytest.mark.parametrize("release", ["0.8.0", "0.7.2"])
def test_spark_reads_every_branch_and_commit(spark, release, tmp_path):
    source, target = unpack(f"{release}/graph", tmp_path), tmp_path / "ours.omni"
    omnigraph.import_original(source, target)

    def rows(graph, **options):
        lines = []
        for name in TYPES:
            reader = spark.read.format("omnigraph").option("graph", str(graph))
            for option, value in options.items():
                reader = reader.option(option, value)
            for row in reader.load(name).toArrow().to_pylist():
                lines.append(_line(name, row))
        return ours(lines)

    for branch in BRANCHES:
        assert rows(target, branch=branch) == theirs(answers(release)["branches"][branch])
    for commit_id, expected in rows_by_commit(release).items():
        assert rows(target, commit=commit_id) == expected
    shutil.rmtree(source)
    moved = target.rename(tmp_path / "moved.omni")
    # The versions of main name no place.
    for commit in recorded_commits(release, "deep/er") + recorded_commits(release, "review/1"):
        assert rows(moved, commit=commit[0]) == rows_by_commit(release)[commit[0]]


def _line(name, row):
    """A row as an export of ours has it."""
    data = {key: value for key, value in row.items() if key not in ("id", "src", "dst")}
    for key in ("born", "since"):
        if data.get(key) is not None:
            data[key] = str(data[key])
    if data.get("seen") is not None:
        data["seen"] = f"{data['seen']:%Y-%m-%dT%H:%M:%S}Z"
    if "src" in row:
        ends = {"edge": name, "id": row["id"], "from": row["src"], "to": row["dst"]}
        return json.dumps({**ends, "data": data})
    return json.dumps({"type": name, "data": data})


def test_spark_exports_what_the_release_exported(spark, tmp_path):
    assert spark is not None
    source, target = unpack("0.8.0/graph", tmp_path), tmp_path / "ours.omni"
    omnigraph.import_original(source, target)
    graph = omnigraph.open(target)
    graph.at(branch="review/1").export(tmp_path / "rows", engine="spark")
    lines = [
        line
        for path in sorted((tmp_path / "rows").rglob("*.jsonl*"))
        for line in path.read_text().splitlines()
    ]
    assert ours(lines) == theirs(answers("0.8.0")["branches"]["review/1"])
