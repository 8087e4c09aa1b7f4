"""What cannot be merged, by kind; and how people decide about it."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import (
    BranchNotFoundError,
    ErrorCode,
    InvalidInputError,
    InvalidNameError,
    NotAllowedError,
)
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import Conflict, ConflictKind, MergeConflictError
from omnigraph.merge.outcomes import Outcome
from tests.contract.merge.oracle import Rows
from tests.contract.merge.worlds import (
    Changes,
    change,
    conflict_keys,
    edge,
    node,
    rows_of,
    use,
    world,
)

RULED = """
node P { name: String @key  mail: String?  rank: I32?  first: String?  last: String?
         @unique(mail) @unique(first, last) @range(rank, 0..9)
         @length(first, 1..3) }
edge K: P -> P @card(0..2) { w: I32? }
"""


def ruled(name: str, **values: Any) -> dict[str, Any]:
    empty = {"mail": None, "rank": None, "first": None, "last": None}
    return {"id": name, "name": name, **empty, **values}


BASE: Rows = {
    "P": {name: ruled(name) for name in ("x", "y", "z")},
    "K": {"e": edge("e", "x", "y")},
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = world(tmp_path / "graph", BASE, RULED)
    made.branches.create("draft")
    return made


def both(graph: Graph, *, ours: Changes, theirs: Changes) -> None:
    change(graph, ours)
    change(graph, theirs, branch="draft")


def refused(graph: Graph, resolve: str | None = None) -> MergeConflictError:
    before = graph.snapshot()
    with pytest.raises(MergeConflictError) as caught:
        graph.merge("draft", resolve=resolve)
    assert graph.snapshot() == before
    assert caught.value.code is ErrorCode.MERGE_CONFLICTS
    return caught.value


def decisions(*entries: dict[str, Any]) -> str:
    return json.dumps(entries)


def at(id_: str, type_name: str = "P", **more: Any) -> dict[str, Any]:
    return {"type": type_name, "id": id_, **more}


def test_rows_that_share_what_must_be_unique_conflict(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="m")}},
        theirs={"P": {"n": ruled("n", mail="m"), "z": ruled("z", rank=1)}},
    )
    error = refused(graph)
    assert conflict_keys(error.conflicts) == {("unique_violation", "P", "n", "mail")}
    assert "'n'" in error.message
    assert "'x'" in error.message
    assert "--resolve" in error.hint
    # Whose value it shall be cannot be told; that one row comes and the other not, can.
    assert refused(graph, "theirs").conflicts == error.conflicts
    assert "take ours or give a value" in error.hint

    change(graph, {"P": {"y": ruled("y", rank=2)}})
    graph.merge("draft", resolve="ours")
    rows = rows_of(graph)["P"]
    assert rows == BASE["P"] | {
        "x": ruled("x", mail="m"),
        "y": ruled("y", rank=2),
        "z": ruled("z", rank=1),
    }


def test_a_unique_conflict_is_decided_by_another_value(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="m")}},
        theirs={"P": {"n": ruled("n", mail="m"), "y": ruled("y", mail="k")}},
    )
    graph.merge("draft", resolve=decisions(at("n", property="mail", value="other")))
    assert rows_of(graph)["P"]["n"] == ruled("n", mail="other")


def test_a_unique_conflict_is_decided_for_either_row(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="m", rank=1)}},
        theirs={"P": {"x": ruled("x", rank=2), "y": ruled("y", mail="m")}},
    )
    # Once x is changed by the merge as well, it is the row that is reported.
    rank = at("x", property="rank", take="theirs")
    for other in ("x", "y"):
        text = decisions(rank, at(other, property="mail", value="k"))
        assert graph.merge("draft", resolve=text, dry_run=True).conflicts == ()
    graph.merge("draft", resolve=text)
    rows = rows_of(graph)["P"]
    assert (rows["x"], rows["y"]) == (ruled("x", mail="m", rank=2), ruled("y", mail="k"))


def test_another_value_that_is_taken_too_is_still_a_conflict(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="m"), "y": ruled("y", mail="k")}},
        theirs={"P": {"n": ruled("n", mail="m")}},
    )
    error = refused(graph, decisions(at("n", property="mail", value="k")))
    assert conflict_keys(error.conflicts) == {("unique_violation", "P", "n", "mail")}
    assert "'k'" in error.message


def test_a_unique_pair_made_of_both_sides_conflicts_and_takes_a_value_for_either(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", first="a", last="b"), "y": ruled("y", first="a")}},
        theirs={"P": {"y": ruled("y", last="b")}},
    )
    assert conflict_keys(refused(graph).conflicts) == {("unique_violation", "P", "y", None)}
    graph.merge("draft", resolve=decisions(at("y", property="last", value="c")))
    assert rows_of(graph)["P"]["y"] == ruled("y", first="a", last="c")


def test_too_many_edges_of_both_sides_together_conflict(graph):
    both(
        graph,
        ours={"K": {"o": edge("o", "x", "z")}},
        theirs={"K": {"t": edge("t", "x", "z"), "u": edge("u", "y", "z")}},
    )
    error = refused(graph)
    assert conflict_keys(error.conflicts) == {("cardinality_violation", "K", "x", "src")}
    assert conflict_keys(refused(graph, "theirs").conflicts) == conflict_keys(error.conflicts)
    graph.merge("draft", resolve=decisions(at("x", "K", take="ours")))
    assert rows_of(graph)["K"].keys() == {"e", "o", "u"}


def test_a_value_of_neither_side_must_keep_the_rules_too(graph):
    both(graph, ours={"P": {"x": ruled("x", rank=1)}}, theirs={"P": {"x": ruled("x", rank=2)}})
    error = refused(graph, decisions(at("x", property="rank", value=10)))
    assert conflict_keys(error.conflicts) == {("value_constraint_violation", "P", "x", "rank")}
    graph.merge("draft", resolve=decisions(at("x", property="rank", value=9)))
    assert rows_of(graph)["P"]["x"] == ruled("x", rank=9)


def test_a_text_of_neither_side_must_have_the_right_length_too(graph):
    both(
        graph, ours={"P": {"x": ruled("x", first="a")}}, theirs={"P": {"x": ruled("x", first="b")}}
    )
    error = refused(graph, decisions(at("x", property="first", value="abcd")))
    assert conflict_keys(error.conflicts) == {("value_constraint_violation", "P", "x", "first")}
    graph.merge("draft", resolve=decisions(at("x", property="first", value="abc")))
    assert rows_of(graph)["P"]["x"] == ruled("x", first="abc")


def test_edges_without_their_nodes_conflict_on_either_side(graph):
    both(
        graph,
        ours={"P": {"z": None}, "K": {"o": edge("o", "y", "x")}},
        theirs={"K": {"t": edge("t", "x", "z"), "e": None}, "P": {"y": None}},
    )
    assert conflict_keys(refused(graph).conflicts) == {
        ("orphan_edge", "K", "t", "dst"),
        ("orphan_edge", "K", "o", "src"),
    }
    graph.merge("draft", resolve=decisions(at("t", "K", take="theirs"), at("o", "K", take="ours")))
    rows = rows_of(graph)
    assert rows["P"].keys() == {"x", "y", "z"}
    # Theirs had deleted e along with y, so e is kept along with it.
    assert rows["K"].keys() == {"t", "o", "e"}


HUB: Rows = {
    "P": {name: ruled(name) for name in ("hub", "x", "y", "gone")},
    "K": {
        "in": edge("in", "x", "hub"),
        "out": edge("out", "hub", "y"),
        "loop": edge("loop", "hub", "hub"),
        "lost": edge("lost", "gone", "hub"),
        "other": edge("other", "x", "y"),
    },
}
DELETED: Changes = {
    "P": {"hub": None, "gone": None},
    "K": {"in": None, "out": None, "loop": None, "lost": None},
}
KEPT = {"in", "out", "loop", "other"}


@pytest.fixture(params=["theirs deletes", "ours deletes"])
def hub(request, tmp_path: Path) -> tuple[Graph, str, str]:
    """A node that one side deleted with its edges, and the other changed; which side has it."""
    graph = world(tmp_path / "graph", HUB, RULED.replace("@card(0..2)", ""))
    graph.branches.create("draft")
    update: Changes = {"P": {"hub": ruled("hub", rank=5)}}
    if request.param == "theirs deletes":
        both(graph, ours=update, theirs=DELETED)
        return graph, "ours", "theirs"
    both(graph, ours=DELETED, theirs=update)
    return graph, "theirs", "ours"


def test_a_conflict_counts_the_edges_deleted_with_its_node(hub, engine):
    graph = use(hub[0], engine)
    [conflict] = refused(graph).conflicts
    assert (conflict.kind, conflict.id) == (ConflictKind.DELETE_VS_UPDATE, "hub")
    # All four were deleted with it, although one leads to a node that stays deleted.
    assert (conflict.edges, conflict.edge_counts) == (4, {"K": 4})
    assert str(conflict).endswith("(4 edges were deleted along with the node)")
    assert conflict.to_json()["edges"] == 4
    [shown] = graph.merge("draft", dry_run=True).conflicts
    assert shown == conflict


@pytest.mark.parametrize("deleting", ["theirs", "ours"])
def test_an_edge_that_needs_a_deleted_node_counts_the_edges_deleted_with_it(
    deleting, engine, tmp_path
):
    graph = use(world(tmp_path / "graph", HUB, RULED.replace("@card(0..2)", "")), engine)
    graph.branches.create("draft")
    new: Changes = {"K": {"new": edge("new", "x", "hub")}}
    both(graph, **{deleting: DELETED, "ours" if deleting == "theirs" else "theirs": new})

    [conflict] = refused(graph).conflicts

    assert (conflict.kind, conflict.id) == (ConflictKind.ORPHAN_EDGE, "new")
    assert (conflict.edges, conflict.edge_counts) == (4, {"K": 4})
    assert str(conflict).endswith("(4 edges were deleted along with the node)")
    assert Conflict.from_json(conflict.to_json()) == conflict
    [shown] = graph.merge("draft", dry_run=True).conflicts
    assert shown == conflict
    graph.merge("draft", resolve="ours" if deleting == "theirs" else "theirs")
    assert rows_of(graph)["K"].keys() == KEPT | {"new"}


def test_a_changed_edge_of_a_deleted_node_counts_the_edges_deleted_with_it(hub):
    graph, having, deleting = hub
    changed: Changes = {"K": {"in": edge("in", "x", "hub", 5)}}
    change(graph, changed, branch="main" if having == "ours" else "draft")

    [conflict] = refused(graph, decisions(at("hub", take=deleting))).conflicts

    assert (conflict.kind, conflict.id) == (ConflictKind.DELETE_VS_UPDATE, "in")
    assert conflict.edge_counts == {"K": 4}
    # A filter removes hidden types from the counts, and not from texts.
    assert [reason for reason in conflict.reasons if "edges" in reason] == []


def test_a_node_that_is_kept_keeps_its_edges(hub):
    graph, having, _ = hub
    graph.merge("draft", resolve=having)
    rows = rows_of(graph)
    assert rows["P"].keys() == {"hub", "x", "y"}
    assert rows["P"]["hub"]["rank"] == 5
    assert rows["K"] == {id_: HUB["K"][id_] for id_ in KEPT}


def test_a_node_that_stays_deleted_takes_its_edges_along(hub):
    graph, _, deleting = hub
    graph.merge("draft", resolve=deleting)
    assert rows_of(graph)["K"].keys() == {"other"}


def test_an_edge_of_a_kept_node_is_decided_by_itself_where_it_is_named(hub):
    graph, having, deleting = hub
    text = decisions(at("hub", take=having), at("in", "K", take=deleting))
    graph.merge("draft", resolve=text)
    assert rows_of(graph)["K"].keys() == KEPT - {"in"}


def test_a_decision_about_an_edge_of_a_deleted_node_is_refused(hub):
    graph, having, deleting = hub
    text = decisions(at("hub", take=deleting), at("in", "K", take=having))
    with pytest.raises(InvalidInputError, match="K 'in'"):
        graph.merge("draft", resolve=text)


def test_a_row_in_conflict_names_the_rules_that_it_breaks_besides(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="m"), "y": ruled("y", rank=1)}},
        theirs={"P": {"y": ruled("y", mail="m", rank=2)}},
    )
    [conflict] = refused(graph).conflicts
    assert (conflict.kind, conflict.id, conflict.property) == ("divergent_update", "y", "rank")
    [reason] = conflict.reasons
    assert reason.startswith("unique_violation: ")
    assert graph.merge("draft", dry_run=True).conflict_count == 1
    # Once the row is decided, the rule that it breaks is the conflict.
    [left] = refused(graph, decisions(at("y", property="rank", take="ours"))).conflicts
    assert (left.kind, left.property) == ("unique_violation", "mail")


def test_an_edge_that_theirs_changed_comes_back_with_its_node(graph):
    # Ours deleted the node and with it the edge; theirs wants the edge as it has it.
    both(
        graph,
        ours={"P": {"y": None}, "K": {"e": None}},
        theirs={"K": {"e": edge("e", "x", "y", w=5)}},
    )
    assert conflict_keys(refused(graph).conflicts) == {("delete_vs_update", "K", "e", None)}
    graph.merge("draft", resolve="theirs")
    assert rows_of(graph) == {**BASE, "K": {"e": edge("e", "x", "y", w=5)}}


@pytest.mark.parametrize("changed", [{"K": {"e": edge("e", "x", "y", w=5)}}, {}])
@pytest.mark.parametrize("resolve", ["theirs", "ours"])
def test_an_edge_that_ours_led_to_a_node_that_theirs_deleted_is_as_one_side_has_it(
    graph, resolve, changed
):
    theirs = {"P": {"z": None}, **changed}
    both(graph, ours={"K": {"e": edge("e", "x", "z")}}, theirs=theirs)
    sides = {"theirs": rows_of(graph, "draft"), "ours": rows_of(graph)}
    assert conflict_keys(refused(graph).conflicts) == {("orphan_edge", "K", "e", "dst")}
    graph.merge("draft", resolve=resolve)
    assert rows_of(graph) == sides[resolve]


def test_every_conflict_is_told_however_many_there_are(graph):
    names = [f"n{number:03}" for number in range(60)]
    both(
        graph,
        ours={"P": {"o" + name: ruled("o" + name, mail=name) for name in names}},
        theirs={
            "P": {
                **{name: ruled(name, mail=name) for name in names},
                "x": ruled("x", rank=1),
            }
        },
    )
    change(graph, {"P": {"x": ruled("x", rank=2)}})
    error = refused(graph)
    assert len(error.conflicts) == 61
    assert "has 61 conflicts" in error.message
    assert "and 56 more" in error.message
    places = [(each.type_name, str(each.id)) for each in error.conflicts]
    assert places == sorted(places)
    graph.merge("draft", resolve="ours")
    assert len(rows_of(graph)["P"]) == 3 + 60


@pytest.mark.parametrize("resolve", [None, "theirs", '[{"take": "theirs"}]'])
def test_a_preview_with_conflicts_is_conflicted(graph, resolve):
    both(
        graph,
        ours={"P": {"o": ruled("o", mail="m")}},
        theirs={"P": {"n": ruled("n", mail="m")}},
    )
    shown = graph.merge("draft", resolve=resolve, dry_run=True)
    assert (shown.outcome, shown.conflict_count) == (Outcome.CONFLICTED, 1)
    assert [each.kind for each in shown.conflicts] == [ConflictKind.UNIQUE_VIOLATION]
    decided = graph.merge("draft", resolve="ours", dry_run=True)
    assert (decided.outcome, decided.is_conflicted) == (Outcome.MERGED, False)


def test_a_conflict_names_the_three_values(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="a"), "y": None}, "K": {"e": None}},
        theirs={"P": {"x": ruled("x", mail="b"), "y": ruled("y", rank=3)}},
    )
    update, delete = refused(graph).conflicts
    assert (update.kind, update.property) == (ConflictKind.DIVERGENT_UPDATE, "mail")
    assert (update.base, update.ours, update.theirs) == (None, "a", "b")
    assert str(update) == "divergent_update: P 'x' mail is 'a' in ours and 'b' in theirs"
    assert (delete.base, delete.ours, delete.theirs) == (ruled("y"), None, ruled("y", rank=3))
    assert str(delete) == (
        "delete_vs_update: P 'y' was deleted by ours and changed by theirs "
        "(1 edge was deleted along with the node)"
    )


def test_each_property_is_decided_by_itself(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="a", rank=1, first="o"), "n": ruled("n", rank=1)}},
        theirs={"P": {"x": ruled("x", mail="b", rank=2, last="t"), "n": ruled("n", rank=2)}},
    )
    graph.merge(
        "draft",
        resolve=decisions(
            at("x", property="mail", take="theirs"),
            at("x", property="rank", value=7),
            at("n", take="ours"),
        ),
    )
    rows = rows_of(graph)["P"]
    assert rows["x"] == ruled("x", mail="b", rank=7, first="o", last="t")
    assert rows["n"] == ruled("n", rank=1)


def test_what_is_left_undecided_is_told_alone(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="a"), "y": ruled("y", mail="c")}},
        theirs={"P": {"x": ruled("x", mail="b"), "y": ruled("y", mail="d")}},
    )
    error = refused(graph, decisions(at("x", take="ours")))
    assert conflict_keys(error.conflicts) == {("divergent_update", "P", "y", "mail")}


def test_one_entry_decides_all_that_the_others_do_not(graph):
    both(
        graph,
        ours={"P": {"x": ruled("x", mail="a"), "y": ruled("y", mail="c")}},
        theirs={"P": {"x": ruled("x", mail="b"), "y": ruled("y", mail="d")}},
    )
    graph.merge("draft", resolve=decisions(at("x", property="mail", value="v"), {"take": "theirs"}))
    rows = rows_of(graph)["P"]
    assert (rows["x"]["mail"], rows["y"]["mail"]) == ("v", "d")


TYPED = """
node T { name: String @key  d: Date?  t: DateTime?  f: F32?  big: I64?  words: [String]?
         v: Vector(2)?  blob: Blob?  e: enum(on, off)?  yes: Bool? }
"""
VALUES: dict[str, tuple[Any, Any, Any, Any]] = {
    # property: ours, theirs, as JSON gives it, as it is then
    "d": (date(2020, 1, 1), date(2021, 1, 1), "2022-02-03", date(2022, 2, 3)),
    "t": (
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2021, 1, 1, tzinfo=UTC),
        "2022-02-03T04:05:06Z",
        datetime(2022, 2, 3, 4, 5, 6, tzinfo=UTC),
    ),
    "f": (0.5, 1.5, 2.5, 2.5),
    "big": (1, 2, "9223372036854775807", 9223372036854775807),
    "words": (["a"], ["b"], ["c", ""], ["c", ""]),
    "v": ([1.0, 2.0], [2.0, 3.0], [4, 5.5], [4.0, 5.5]),
    "blob": (b"a", b"b", "base64:aGk=", b"hi"),
    "e": ("on", "off", None, None),
    "yes": (True, False, None, None),
}
MISFITS: dict[str, Any] = {
    "d": "no date",
    "t": 5,
    "f": "x",
    "big": 2**63,
    "words": "c",
    "v": [1.0],
    "blob": "plain",
    "yes": "true",
}


def typed(**values: Any) -> dict[str, Any]:
    return {"id": "x", "name": "x", **dict.fromkeys(VALUES), **values}


@pytest.fixture(scope="module")
def typed_graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = world(tmp_path_factory.mktemp("typed") / "graph", {"T": {"x": typed()}}, TYPED)
    made.branches.create("theirs")
    change(made, {"T": {"x": typed(**{k: v[1] for k, v in VALUES.items()})}}, branch="theirs")
    change(made, {"T": {"x": typed(**{k: v[0] for k, v in VALUES.items()})}})
    return made


def test_values_of_neither_side_become_what_their_property_holds(typed_graph):
    typed_graph.branches.create("all")
    text = decisions(*(at("x", "T", property=k, value=v[2]) for k, v in VALUES.items()))
    typed_graph.merge("theirs", into="all", resolve=text)
    rows = rows_of(typed_graph, "all")["T"]
    assert rows["x"] == typed(**{name: each[3] for name, each in VALUES.items()})


@pytest.mark.parametrize("name", MISFITS)
def test_values_that_do_not_fit_are_refused(typed_graph, name):
    before = typed_graph.snapshot()
    text = decisions(at("x", "T", property=name, value=MISFITS[name]))
    with pytest.raises(InvalidInputError, match=f"T {name}"):
        typed_graph.merge("theirs", resolve=text)
    assert typed_graph.snapshot() == before


def test_a_side_is_taken_for_values_of_every_type(typed_graph):
    for choice, place in (("ours", 0), ("theirs", 1)):
        typed_graph.branches.create(choice + "_all")
        typed_graph.merge("theirs", into=choice + "_all", resolve=choice)
        rows = rows_of(typed_graph, choice + "_all")["T"]
        assert rows["x"] == typed(**{name: each[place] for name, each in VALUES.items()})


BAD = {
    "no JSON": "{",
    "no list": "{}",
    "no entries": "[1]",
    "no type": decisions({"id": "x", "take": "ours"}),
    "no id": decisions({"type": "P", "take": "ours"}),
    "an id that is no text": decisions(at(1, take="ours")),  # type: ignore[arg-type]
    "neither": decisions(at("x")),
    "take and value": decisions(at("x", property="mail", take="ours", value=1)),
    "no side": decisions(at("x", take="mine")),
    "a side that is no text": decisions(at("x", take=["ours"])),
    "a value for a row": decisions(at("x", value=1)),
    "twice": decisions(at("x", take="ours"), at("x", take="theirs")),
    "all others, twice": decisions({"take": "ours"}, {"take": "theirs"}),
    "all others, by no side": decisions({"take": "mine"}),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad_resolutions_are_refused(graph, text):
    both(graph, ours={"P": {"x": ruled("x", rank=1)}}, theirs={"P": {"x": ruled("x", rank=2)}})
    before = graph.snapshot()
    for dry_run in (True, False):
        with pytest.raises(InvalidInputError):
            graph.merge("draft", resolve=text, dry_run=dry_run)
    assert graph.snapshot() == before


STRAY = {
    "another row": at("y", take="ours"),
    "no row": at("nobody", take="ours"),
    "no type": at("x", "Nope", take="ours"),
    "another property": at("x", property="mail", take="theirs"),
    "no property": at("x", property="nope", value=1),
}


@pytest.mark.parametrize("entry", STRAY.values(), ids=STRAY.keys())
def test_resolutions_of_what_does_not_conflict_are_refused(graph, entry):
    both(
        graph,
        ours={"P": {"x": ruled("x", rank=1)}},
        theirs={"P": {"x": ruled("x", rank=2, mail="m")}},
    )
    before = graph.snapshot()
    text = decisions(at("x", property="rank", take="ours"), entry)
    for dry_run in (True, False):
        with pytest.raises(InvalidInputError, match=f"does not conflict: .*{entry['id']}"):
            graph.merge("draft", resolve=text, dry_run=dry_run)
    assert graph.snapshot() == before


def test_merges_of_what_is_not_there_are_refused(graph):
    graph.branches.create("gone")
    graph.branches.delete("gone")
    for dry_run in (True, False):
        for source, target in (("nope", "main"), ("draft", "nope"), ("gone", "main")):
            with pytest.raises(BranchNotFoundError):
                graph.merge(source, into=target, dry_run=dry_run)
        with pytest.raises(InvalidInputError, match="into itself"):
            graph.merge("draft", into="draft", dry_run=dry_run)
        for name in ("", "a b", "__x"):
            with pytest.raises(InvalidNameError):
                graph.merge(name, dry_run=dry_run)
    past = graph.at(commit=graph.snapshot().head.commit_id)
    with pytest.raises(NotAllowedError):
        past.merge("draft")


def test_messages_actors_and_the_default_message_are_kept(graph):
    change(graph, {"P": {"n": ruled("n")}}, branch="draft")
    graph.merge("draft", actor="ada", message="why")
    head = graph.snapshot().head
    assert (head.actor, head.message) == ("ada", "why")
    change(graph, {"P": {"m": ruled("m")}}, branch="draft")
    assert graph.merge("draft").outcome is Outcome.MERGED
    assert graph.snapshot().head.message == "merge draft into main"


def test_plain_nodes_merge_without_rules(tmp_path):
    base: Rows = {"P": {"x": node("x")}, "K": {}}
    graph = world(tmp_path / "plain", base)
    graph.branches.create("draft")
    both(graph, ours={"P": {"x": node("x", a=2)}}, theirs={"P": {"x": node("x", b=2)}})
    assert graph.merge("draft").outcome is Outcome.MERGED
    assert rows_of(graph)["P"] == {"x": node("x", a=2, b=2)}
