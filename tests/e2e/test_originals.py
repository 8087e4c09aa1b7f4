"""`omnigraph import original`, and what other commands say of such a graph."""

import json
import shutil

import pytest

from tests.support.originals import (
    BRANCHES,
    INTERRUPTED,
    RELEASES,
    answers,
    ours,
    outcome,
    recorded_commits,
    rows_by_commit,
    theirs,
    unpack,
)


def exported(here, store, *point):
    done = here("export", "-", "--store", str(store), *point)
    assert done.code == 0, done.err
    return ours(done.out.splitlines())


@pytest.mark.parametrize("release", RELEASES)
def test_command_imports_every_branch_commit_and_row(here, release, tmp_path):
    source, target = unpack(f"{release}/graph", tmp_path), tmp_path / "ours.omni"

    done = here("import", "original", str(source), str(target))

    assert done.code == 0, done.err
    stamp = {"0.8.0": 4, "0.7.2": 3}[release]
    assert f"(internal schema {stamp})" in done.said
    listed = here("branch", "list", "--store", str(target), "--json").json
    assert sorted(each["branch"] for each in listed) == sorted(BRANCHES)
    for branch in BRANCHES:
        commits = here("commit", "list", "--store", str(target), "--branch", branch, "--json").json
        found = [(each["commit_id"], each["parent"], each["merged_parent"]) for each in commits]
        assert sorted(found) == sorted(row[:3] for row in recorded_commits(release, branch))
        at_head = exported(here, target, "--branch", branch)
        assert at_head == theirs(answers(release)["branches"][branch])
    for commit_id, rows in rows_by_commit(release).items():
        assert exported(here, target, "--commit", commit_id) == rows
    shutil.rmtree(source)
    moved = target.rename(tmp_path / "moved.omni")
    for branch in BRANCHES:
        at_head = exported(here, moved, "--branch", branch)
        assert at_head == theirs(answers(release)["branches"][branch])
    for commit_id, rows in rows_by_commit(release).items():
        assert exported(here, moved, "--commit", commit_id) == rows


@pytest.mark.parametrize("number", INTERRUPTED)
def test_command_says_what_became_of_an_interrupted_write(here, number, tmp_path):
    source = unpack(f"0.8.0-interrupted/interrupted-{number}", tmp_path)

    done = here("import", "original", str(source), str(tmp_path / "ours.omni"), "--json")

    operation_id = outcome(number)["sidecar"]["operation_id"]
    expected = "rolled forward" if number == 1 else "rolled back"
    assert done.json["recovered"] == {operation_id: expected}
    assert done.json["commits"] == {"main": 6}


@pytest.mark.parametrize(
    "command",
    [
        ("query", "-e", "query q() { match { $p: Person } return { $p.name } }"),
        ("log",),
        ("branch", "list"),
        ("mutate", "-e", 'query q() { insert City { name: "x" } }'),
        ("schema", "show"),
    ],
    ids=lambda command: command[0],
)
def test_commands_name_the_import(here, command, tmp_path):
    source = unpack("0.8.0/graph", tmp_path)
    done = here(*command, "--store", str(source))
    assert done.code != 0
    assert "was written by the Rust release 0.8 (internal schema 4)" in done.said
    assert f"omnigraph import original {source} TARGET" in done.said


def test_schema_show_says_which_vectors_come_with_the_data(here, tmp_path):
    schema = tmp_path / "schema.pg"
    schema.write_text('node A {\n  text: String\n  v: Vector(3072) @embed("text")\n}\n')
    made = here("init", "--schema", str(schema), str(tmp_path / "a.omni"))
    assert "its vectors come with the data" in made.said
    shown = here("schema", "show", "--store", str(tmp_path / "a.omni"))
    assert shown.out == schema.read_text()
    assert "A.v: vectors come with the data, because local makes vectors of 64" in shown.said


def test_interrupted_import_says_how_to_go_on(here, tmp_path):
    from omnigraph.failpoints import Failpoint, SimulatedCrash, arm

    source, target = unpack("0.8.0/graph", tmp_path), tmp_path / "ours.omni"
    with arm(Failpoint.IMPORT_AFTER_NAMES), pytest.raises(SimulatedCrash):
        here("import", "original", str(source), str(target))
    asked = here("log", "--store", str(target), "--branch", "draft")
    assert asked.code != 0
    assert "its import was interrupted" in asked.said
    assert here("import", "original", str(source), str(target)).code == 0
    assert json.loads(here("log", "--store", str(target), "--json").out)
