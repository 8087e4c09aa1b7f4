"""The demo, on a graph that is small: every step ends as it says it does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from omnigraph_demo.world import World
from tests.support.commands import omnigraph


def test_the_tour_reaches_its_end_without_spark(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    done = omnigraph("demo", "--rows", "2000", "--engine", "local", "--directory", str(place))
    assert done.code == 0, done.err
    for said in (
        "2,000 rows typed, checked, committed and indexed",
        "Company  meaning   local  10       0      0        0",
        "$ omnigraph query about --query science.gq",
        "$ omnigraph branch merge review/bob --resolve decisions.json",
        "Catalysts, revised",
        "rename property Person.birthday: born -> birthday  [metadata]",
        "add property Paper.reads: U32 @default(0)  [rewritten, ",
        "drop property Person.bio: String  [metadata, ",
        "Killed",
        "rolled_back",
    ):
        assert said in done.out, said
    for refused in (
        "error[integrity]",
        "did you mean Paper?",
        "error[merge_conflicts]",
        "it is called birthday now",
    ):
        assert refused in done.err, refused
    assert (place / "science.omni").is_dir()


def test_a_directory_that_exists_is_left_alone(tmp_path: Path) -> None:
    done = omnigraph("demo", "--directory", str(tmp_path))
    assert done.code == 2
    assert "cannot be made" in done.err
    assert not list(tmp_path.iterdir())


def test_the_world_has_the_rows_it_says_and_is_the_same_again(tmp_path: Path) -> None:
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    count = World(5_000).write(first)
    World(5_000).write(again)
    assert first.read_bytes() == again.read_bytes()
    rows = [json.loads(line) for line in first.read_text("utf-8").splitlines()]
    assert len(rows) == count == 5_000
    kinds = Counter(each.get("type") or each["edge"] for each in rows)
    assert set(kinds) == {"Person", "Company", "Paper", "Wrote", "WorksAt", "Cites"}
    for type_name, key in {"Person": "name", "Company": "name", "Paper": "doi"}.items():
        keys = {each["data"][key] for each in rows if each.get("type") == type_name}
        assert len(keys) == kinds[type_name]
