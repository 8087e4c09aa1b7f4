"""What a load does to a graph: modes, rules, quarantine, and that it is all or nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidParameterError,
    OmnigraphError,
    TypeNotFoundError,
)
from omnigraph.integrity.violations import IntegrityError, Rule
from tests.contract.load.loading import Loaded, changed, edge, lines_of, loaded, node

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?
  mail: String? @unique
  mood: enum(glad, sad)?
  level: I32 @default(1)
  @range(age, 0..150)
  @check(mail, "@")
  @length(mail, ..40)
}
node City { name: String @key }
node Note { text: String? }
node Dog { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
edge OwnedBy: Dog -> Person @card(1..)
"""
PEOPLE: Final = (
    edge("Knows", "ada", "bob", since="2024-01-31"),
    node("Person", name="ada", age=36, mail="a@x"),
    edge("LivesIn", "ada", "Oslo"),
    node("City", name="Oslo"),
    node("Person", name="bob"),
)


@pytest.fixture
def world(tmp_path: Path) -> Loaded:
    return loaded(tmp_path, SCHEMA)


@pytest.fixture
def people(world: Loaded) -> Loaded:
    world.put(*PEOPLE)
    return world


def refused(found: Loaded, *lines: Any, mode: str = "append", **more: Any) -> IntegrityError:
    """The refusal of a load, which leaves everything as it was."""
    before = found.head()
    with pytest.raises(IntegrityError) as refusal:
        found.put(*lines, mode=mode, **more)
    assert found.head() == before
    return refusal.value


def broken(error: IntegrityError) -> list[tuple[Rule, str, str]]:
    return [(each.rule, each.type_name, Path(each.origin).name) for each in error.violations]


def test_nodes_and_edges_in_any_order_become_one_commit(world):
    result = world.put(*PEOPLE)
    assert changed(result) == {
        "Person": (2, 0, 0),
        "City": (1, 0, 0),
        "Knows": (1, 0, 0),
        "LivesIn": (1, 0, 0),
    }
    assert result.commit_id == world.head()
    assert result.engine == "local"
    assert "B of input" in result.why
    assert {"read", "check", "stage"} <= set(result.seconds)
    assert world.ends("Knows") == {("ada", "bob")}
    assert world.rows("Person")["bob"]["level"] == 1
    assert world.graph.commits.list()[0].operation == "load"


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_an_edge_without_its_node_changes_nothing_and_the_next_load_succeeds(people, mode):
    error = refused(people, edge("Knows", "ada", "nobody"), mode=mode)
    assert broken(error) == [(Rule.ENDPOINT, "Knows", "data.jsonl:1")]
    people.put(node("Person", name="cy"))
    assert people.ids("Person") == {"ada", "bob", "cy"}


def test_merge_replaces_whole_rows_adds_others_and_leaves_the_rest(people):
    result = people.put(
        node("Person", name="ada", mood="glad"), node("Person", name="cy"), mode="merge"
    )
    assert changed(result) == {"Person": (1, 1, 0)}
    rows = people.rows("Person")
    assert set(rows) == {"ada", "bob", "cy"}
    assert rows["ada"] == {"name": "ada", "age": None, "mail": None, "mood": "glad", "level": 1}


def test_overwrite_replaces_the_types_it_names_and_no_others(people):
    result = people.put(
        node("Person", name="ada"), node("Person", name="bob"), node("Person", name="eve"),
        mode="overwrite",
    )  # fmt: skip
    assert changed(result) == {"Person": (3, 0, 2)}
    assert people.ids("Person") == {"ada", "bob", "eve"}
    assert people.ids("City") == {"Oslo"}
    assert people.ends("Knows") == {("ada", "bob")}


def test_overwrite_may_not_strand_edges_that_stay(people):
    error = refused(people, node("Person", name="ada"), mode="overwrite")
    assert {each.rule for each in error.violations} == {Rule.STRANDED}
    assert {each.type_name for each in error.violations} == {"Knows"}


def test_overwrite_of_nodes_and_their_edges_leaves_nothing_stranded(people):
    people.put(
        node("Person", name="zoe"), edge("Knows", "zoe", "zoe"), edge("LivesIn", "zoe", "Oslo"),
        mode="overwrite",
    )  # fmt: skip
    assert people.ids("Person") == {"zoe"}
    assert people.ends("LivesIn") == {("zoe", "Oslo")}


def test_overwrite_with_an_empty_file_of_a_type_empties_it(people):
    people.load(people.file("LivesIn.jsonl"), "overwrite")
    assert people.rows("LivesIn") == {}
    assert people.ids("Person") == {"ada", "bob"}


def test_append_of_an_id_that_exists_is_a_key_conflict(people):
    error = refused(people, node("City", name="Rome"), node("City", name="Oslo"))
    assert broken(error) == [(Rule.EXISTS, "City", "data.jsonl:2")]


# fmt: off
WRONG: Final = {
    "required":    (Rule.REQUIRED, node("City")),
    "type":        (Rule.TYPE, node("Person", name="x", age="old")),
    "float":       (Rule.TYPE, node("Person", name="x", age=1.5)),
    "unknown":     (Rule.TYPE, node("Person", name="x", agge=1)),
    "enum":        (Rule.ENUM, node("Person", name="x", mood="meh")),
    "range":       (Rule.RANGE, node("Person", name="x", age=151)),
    "check":       (Rule.CHECK, node("Person", name="x", mail="nowhere")),
    "length":      (Rule.LENGTH, node("Person", name="x", mail="@" * 41)),
    "unique":      (Rule.UNIQUE, node("Person", name="x", mail="a@x")),
    "endpoint":    (Rule.ENDPOINT, edge("Knows", "ada", "nobody")),
    "cardinality": (Rule.CARDINALITY, edge("LivesIn", "ada", "Oslo")),
    "too few":     (Rule.CARDINALITY, node("Dog", name="rex")),
    "no such type": (Rule.TYPE, node("Persn", name="x")),
    "no JSON":     (Rule.TYPE, '{"type":"Person","data":{"name":"x"'),
    "no envelope": (Rule.TYPE, "[1, 2]"),
}
# fmt: on


@pytest.mark.parametrize(("rule", "line"), WRONG.values(), ids=WRONG.keys())
def test_each_rule_is_refused_with_its_line(people, rule, line):
    good = [node("City", name=f"city {n}") for n in range(300)]
    error = refused(people, *good[:200], line, *good[200:])
    assert broken(error) == [(rule, error.violations[0].type_name, "data.jsonl:201")]


@pytest.mark.parametrize(("rule", "line"), WRONG.values(), ids=WRONG.keys())
def test_quarantine_loads_exactly_the_rest(people, rule, line, tmp_path):
    good = [node("City", name=f"city {n}") for n in range(300)]
    rejects = tmp_path / "rejects.jsonl"
    result = people.put(
        *good, line, on_error="quarantine", rejects=rejects, message="the weekly load"
    )
    assert result.rejected == 1
    assert len(people.ids("City")) == 301
    [reject] = lines_of(rejects)
    assert Path(reject["origin"]).name == "data.jsonl:301"
    assert [each["rule"] for each in reject["violations"]] == [rule]
    assert all(each["reason"] for each in reject["violations"])
    assert reject["row"]
    message = people.graph.commits.list()[0].message
    assert message == "the weekly load\n\n1 row rejected, see rejects.jsonl"


def test_all_rules_at_once_are_counted_together(people):
    lines = [line for _, line in WRONG.values()]
    error = refused(people, *lines)
    assert {rule for rule, _ in WRONG.values()} - {Rule.UNIQUE} <= set(error.counts)


def test_quarantine_goes_on_until_nothing_is_broken(people, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    result = people.put(
        node("Person", name="cy", age=200),
        node("Person", name="dee"),
        edge("Knows", "dee", "cy"),
        edge("Knows", "dee", "ada"),
        node("Dog", name="rex"),
        edge("OwnedBy", "rex", "cy"),
        node("Dog", name="lad"),
        edge("OwnedBy", "lad", "dee"),
        on_error="quarantine",
        rejects=rejects,
    )
    # A person too old; the edges that lead there; the dog that is then nobody's.
    origins = [Path(each["origin"]).name for each in lines_of(rejects)]
    assert origins == [f"data.jsonl:{line}" for line in (1, 3, 5, 6)]
    assert result.rejected == 4
    assert people.ids("Person") == {"ada", "bob", "dee"}
    assert people.ends("Knows") == {("ada", "bob"), ("dee", "ada")}
    assert people.ends("OwnedBy") == {("lad", "dee")}


def test_quarantine_leaves_out_all_rows_that_break_a_rule_together(people, tmp_path):
    result = people.put(
        node("Person", name="x", mail="s@x"),
        node("Person", name="y", mail="s@x"),
        node("Person", name="z", mail="z@x"),
        node("City", name="Rome"),
        node("City", name="Rome"),
        on_error="quarantine",
        rejects=tmp_path / "rejects.jsonl",
    )
    assert result.rejected == 4
    assert changed(result) == {"Person": (1, 0, 0)}


def test_rejected_rows_can_be_mended_and_loaded(people, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    people.put(
        node("Person", name="x", age=151), '{"type":"City","data":{"name":7}}',
        on_error="quarantine", rejects=rejects,
    )  # fmt: skip
    rows = {each["row"]["type"]: each["row"] for each in lines_of(rejects)}
    rows["Person"]["data"]["age"] = 15
    rows["City"]["data"]["name"] = "seven"
    people.put(*rows.values())
    assert people.rows("Person")["x"]["age"] == 15
    assert people.ids("City") == {"Oslo", "seven"}


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_rejects_never_take_the_place_of_another_file(people, engine):
    path = people.file("data.jsonl", node("City", name=7))
    before = Path(path).read_bytes()
    with pytest.raises(AlreadyExistsError, match=r"data\.jsonl exists .*another name"):
        people.load(path, on_error="quarantine", rejects=path, engine=engine)
    with pytest.raises(InvalidParameterError, match="cannot be written to standard output"):
        people.load(path, on_error="quarantine", rejects="-", engine=engine)
    for url in ("s3://lake/rejects.jsonl", Path("hdfs://lake/rejects.jsonl")):
        with pytest.raises(InvalidParameterError, match=r"cannot be written to \w+://"):
            people.load(path, on_error="quarantine", rejects=url, engine=engine)
    assert Path(path).read_bytes() == before
    assert people.ids("City") == {"Oslo"}


def test_a_load_that_is_planned_again_writes_its_rejects_again(people, tmp_path):
    rejects, others = tmp_path / "rejects.jsonl", iter(["Bonn"])
    # An empty file holds nothing that could be lost.
    rejects.touch()

    def meanwhile(stage: str, done: int, _: int | None) -> None:
        for name in others if (stage, done) == ("stage", 1) else ():
            people.load({"City": [{"name": name}]})

    source = {"City": [{"name": "Rome"}, {"name": 7}]}
    result = people.load(source, on_error="quarantine", rejects=rejects, progress=meanwhile)
    assert (result.rejected, len(lines_of(rejects))) == (1, 1)
    assert people.ids("City") == {"Oslo", "Rome", "Bonn"}


def test_rejects_are_json_whatever_numbers_they_have(people, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    row = {"name": "x", "age": float("nan"), "spots": [float("-inf"), 1.0]}
    line = '{"type":"Person","data":{"name":"y","age":Infinity}}'
    source = [{"Person": [row]}, people.file("data.jsonl", line)]
    people.load(source, on_error="quarantine", rejects=rejects)
    first, second = (each["row"] for each in lines_of(rejects))
    assert first == {"name": "x", "age": "NaN", "spots": ["-Infinity", 1.0]}
    assert second["data"]["age"] == "Infinity"


def test_quarantine_cannot_help_edges_that_stay_behind(people, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    refused(
        people, node("Person", name="ada"), mode="overwrite", on_error="quarantine", rejects=rejects
    )
    assert not rejects.exists()


def test_nulls_are_not_alike_and_other_values_are(world):
    world.put(node("Person", name="a"), node("Person", name="b"))
    error = refused(
        world, node("Person", name="c", mail="m@x"), node("Person", name="d", mail="m@x")
    )
    assert {each.rule for each in error.violations} == {Rule.UNIQUE}


def test_a_unique_value_may_be_written_again_by_the_row_that_has_it(people):
    people.put(node("Person", name="ada", mail="a@x", age=37), mode="merge")
    assert people.rows("Person")["ada"]["age"] == 37


def test_an_edge_that_moves_to_another_source_is_counted_at_both(people):
    people.put(node("City", name="Rome"), {**edge("LivesIn", "bob", "Rome"), "id": "home"})
    people.put({**edge("LivesIn", "bob", "Oslo"), "id": "home"}, mode="merge")
    error = refused(people, {**edge("LivesIn", "ada", "Rome"), "id": "home"}, mode="merge")
    assert {each.rule for each in error.violations} == {Rule.CARDINALITY}


def test_ids_that_are_given_are_kept_and_others_are_minted(world):
    world.put({"type": "Note", "id": "n1", "data": {"text": "kept"}}, {"type": "Note"})
    rows = world.rows("Note")
    assert rows["n1"] == {"text": "kept"}
    assert len(rows) == 2
    world.put({"type": "Note", "data": {"id": "n1", "text": "new"}}, mode="merge")
    assert world.rows("Note")["n1"] == {"text": "new"}


def test_unknown_values_are_dropped_when_asked_for(world):
    lines = [node("Person", name="ada", shoe=43), {**node("City", name="Oslo"), "note": "x"}]
    error = refused(world, *lines)
    assert "shoe" in str(error)
    world.put(*lines, ignore_unknown=True)
    assert world.ids("Person") == {"ada"}


def test_an_empty_input_makes_no_commit(people):
    before = people.head()
    result = people.put()
    assert (result.commit_id, people.head()) == (None, before)


def test_a_load_goes_to_the_branch_it_names(people):
    people.graph.branches.create("draft")
    result = people.put(node("City", name="Rome"), branch="draft")
    assert result.branch == "draft"
    assert set(people.rows("City", "draft")) == {"Oslo", "Rome"}
    assert people.ids("City") == {"Oslo"}
    people.put(node("City", name="Oslo"), mode="overwrite", branch="draft")
    assert set(people.rows("City", "draft")) == {"Oslo"}


@pytest.mark.parametrize(
    "more",
    [
        {"mode": "insert"},
        {"on_error": "ignore"},
        {"on_error": "quarantine"},
        {"rejects": "x.jsonl"},
        {"engine": "dask"},
    ],
)
def test_a_word_that_nobody_knows_is_refused_by_name(people, more):
    with pytest.raises(InvalidParameterError):
        people.put(node("City", name="Rome"), **more)


@pytest.mark.parametrize("at", ["read", "check", "stage", "commit"])
def test_an_interruption_leaves_nothing_visible(people, at):
    before, seen = people.head(), []

    def stop(stage: str, done: int, total: int | None) -> None:
        seen.append((stage, done, total))
        if stage == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        people.put(node("City", name="Rome"), edge("LivesIn", "bob", "Rome"), progress=stop)
    landed = at == "commit"
    assert (people.head() != before) == landed
    assert people.ids("City") == ({"Oslo", "Rome"} if landed else {"Oslo"})
    people.put(node("City", name="Bonn"))
    assert "Bonn" in people.ids("City")


def test_progress_is_told_stage_by_stage(people):
    seen: list[tuple[str, int, int | None]] = []
    people.put(*(node("City", name=f"c{n}") for n in range(10)), progress=lambda *a: seen.append(a))
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == [
        "read",
        "check",
        "stage",
        "commit",
    ]
    assert all(done == total for _, done, total in [seen[1], *seen[-2:]])


def test_appends_at_once_all_land(people):
    failures: list[OmnigraphError] = []

    def append(number: int) -> None:
        try:
            people.load(people.file(f"{number}.jsonl", node("City", name=f"c{number}")))
        except OmnigraphError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert people.ids("City") == {"Oslo", *(f"c{number}" for number in range(6))}


def test_a_merge_that_others_overtake_is_a_conflict(people):
    def overtake(stage: str, done: int, _: int | None) -> None:
        if stage == "check" and done:
            people.load(people.file("other.jsonl", node("City", name="Rome")))

    with pytest.raises(ConflictError):
        people.put(node("City", name="Bergen"), mode="merge", progress=overtake)
    assert people.ids("City") == {"Oslo", "Rome"}


def test_an_append_that_others_overtake_is_planned_again_without_reading_again(people):
    reads: list[int] = []

    def overtake(stage: str, done: int, _: int | None) -> None:
        if stage == "read":
            reads.append(done)
        if stage == "check" and done and not (people.folder / "other.jsonl").exists():
            people.load(people.file("other.jsonl", node("City", name="Rome")))

    people.put(node("City", name="Bonn"), progress=overtake)
    assert people.ids("City") == {"Oslo", "Rome", "Bonn"}
    assert len(reads) == 2


def test_a_type_of_an_edge_is_named_with_the_nearest(people):
    with pytest.raises(TypeNotFoundError) as refusal:
        people.load({"Persn": [{"name": "x"}]})
    assert "Person" in refusal.value.hint
