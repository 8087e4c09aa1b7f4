"""Purges: dropped values are gone from every file, and what is kept reads as before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import (
    CommitLetGoError,
    ErrorCode,
    InvalidParameterError,
    NotAllowedError,
)
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.retention import Reason
from tests.support.crashes import Cut, at_rest, cut_off, sleeping_at
from tests.support.purging import (
    AFTER,
    BEFORE,
    HOURS,
    files_with_needles,
    furnish_secrets,
    later,
    purge_now,
    secret,
)
from tests.support.retention import LET_GO, digest, digests, tree, unnamed_files

RULES: Final[Any] = {"keep_commits": 1}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph that has dropped two properties and a type."""
    graph = furnish_secrets(str(tmp_path / "graph.omni"))
    graph.schema.apply(AFTER)
    return graph


def names(graph: Graph, branch: str = "main") -> list[str]:
    query = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    return [row["p.name"] for row in graph.query(query, branch=branch).rows()]


def refusal(graph: Graph, **rules: Any) -> list[dict[str, Any]]:
    """The needs that a purge is refused for. Nothing may have changed."""
    before = tree(graph.uri)
    with pytest.raises(NotAllowedError) as refused:
        graph.schema.purge(**{**RULES, **rules})
    assert refused.value.code is ErrorCode.PURGE_REFUSED
    assert tree(graph.uri) == before
    needs: Any = refused.value.details["needs"]
    assert all(need["way"] in refused.value.message for need in needs)
    return list(needs)


def assert_tidy(uri: str) -> None:
    """Assert that a cleanup finds nothing that it cannot remove; previews go when they are old."""
    later(uri, 10 * 86_400).cleanup()
    assert unnamed_files(uri) == set()


def test_dropped_values_are_gone_from_every_file_and_the_rest_reads_as_before(graph):
    every = [commit.commit_id for commit in graph.commits.list()]
    assert files_with_needles(graph.uri)
    prepared = graph.schema.purge(**RULES)
    assert prepared.dropped == ("Draft", "Knows.remark", "Person.email")
    assert [(done.branch, done.type_name, done.rows) for done in prepared.rewrites] == [
        ("main", "Person", 3),
        ("main", "Knows", 1),
    ]
    assert not prepared.is_done
    assert [need.reason for need in prepared.waits] == [Reason.GRACE]
    assert {commit.commit_id for commit in prepared.commits} == set(every[:-1])
    before = digests(graph.uri)
    assert files_with_needles(graph.uri)

    done = later(graph.uri).schema.purge(**RULES)

    assert done.is_done
    assert (done.held, done.rewrites, done.waits, done.staged) == ((), (), (), None)
    assert files_with_needles(graph.uri) == set()
    after = digests(graph.uri)
    assert after == {id_: LET_GO if id_ in every[:-1] else before[id_] for id_ in before}
    assert names(omnigraph.open(graph.uri)) == ["ada", "bob", "cy"]
    assert_tidy(graph.uri)
    at_rest(graph.uri, rows=True)
    with pytest.raises(CommitLetGoError, match=r"by purge of Draft, Knows\.remark, Person\.email"):
        omnigraph.open(graph.uri).snapshot(commit=every[1])


def test_a_purge_removes_exactly_what_its_preview_shows(graph):
    graph.schema.purge(**RULES)
    handle = later(graph.uri)
    before = tree(graph.uri)
    preview = handle.schema.purge(**RULES, dry_run=True)
    assert tree(graph.uri) == before
    done = handle.schema.purge(**RULES)
    assert preview.cleanup == done.cleanup
    assert preview.commits == done.commits
    assert done.cleanup is not None
    gone = before.keys() - tree(graph.uri).keys()
    assert sum(before[path] for path in gone) == done.cleanup.size
    held = sum(table.files for table in preview.held)
    assert 0 < held < len(gone)


def test_a_preview_of_a_change_shows_what_it_would_lead_to(tmp_path):
    graph = furnish_secrets(str(tmp_path / "graph.omni"))
    before = tree(graph.uri)
    preview = graph.schema.purge(AFTER, **RULES, dry_run=True)
    assert tree(graph.uri) == before
    graph.schema.apply(AFTER)
    prepared = graph.schema.purge(**RULES)
    assert preview.dropped == prepared.dropped
    assert preview.held == prepared.held
    assert [(each.type_name, each.rows, each.size) for each in preview.rewrites] == [
        (each.type_name, each.rows, each.size) for each in prepared.rewrites
    ]
    assert {each.commit_id for each in preview.commits} < {
        each.commit_id for each in prepared.commits
    }
    with pytest.raises(InvalidParameterError, match="purge does not take a schema"):
        graph.schema.purge(AFTER, **RULES)


def test_commits_that_never_had_it_and_those_after_it_are_kept(tmp_path):
    graph = omnigraph.init(tmp_path / "g.omni", "node Person { name: String @key }")
    graph.load({"Person": [{"name": "ada"}]})
    graph.schema.apply("node Person { name: String @key  email: String? }")
    old = [commit.commit_id for commit in graph.commits.list()]
    graph.load({"Person": [{"name": "bob", "email": secret("bob")}]}, index=False)
    graph.schema.apply("node Person { name: String @key }")
    graph.schema.purge(**RULES)
    graph.load({"Person": [{"name": "cy"}]}, index=False)
    before = digests(graph.uri)
    done = later(graph.uri).schema.purge(**RULES)
    assert len(done.commits) == 2
    assert files_with_needles(graph.uri) == set()
    after = digests(graph.uri)
    assert all(after[id_] == before[id_] for id_ in old), "also with the property, and no value"
    assert list(after.values()).count(LET_GO) == 2


def test_there_is_nothing_to_purge_where_nothing_was_dropped_or_all_is_gone(tmp_path, graph):
    fresh = omnigraph.init(tmp_path / "fresh.omni", BEFORE)
    assert fresh.schema.purge(dry_run=True) == fresh.schema.purge()
    assert fresh.schema.purge().is_done
    purge_now(graph.uri)
    again = later(graph.uri).schema.purge(**RULES)
    assert (again.dropped, again.commits, again.is_done) == ((), (), True)
    assert again.cleanup is not None
    assert again.cleanup.is_empty


def test_names_are_the_last_ones_and_a_property_that_came_again_stays(graph):
    renamed = AFTER.replace("Person {", 'Human @rename_from("Person") {').replace(
        "Person ->", "Human ->"
    )
    graph.schema.apply(renamed.replace("-> Person", "-> Human"))
    again = renamed.replace(' @rename_from("Person")', "").replace("-> Person", "-> Human")
    graph.schema.apply(again.replace("age: I32?", "age: I32?  email: String?"))
    graph.mutate('query q() { update Human set { email: "kept@example.org" } where name = "ada" }')
    done = purge_now(graph.uri)
    assert done.dropped == ("Draft", "Knows.remark", "Person.email")
    assert files_with_needles(graph.uri) == set()
    row = omnigraph.open(graph.uri).entity("Human", "ada")
    assert row is not None
    assert row["email"] == "kept@example.org"
    assert_tidy(graph.uri)
    at_rest(graph.uri, rows=True)


def test_earlier_values_of_a_column_that_was_converted_go_with_it(tmp_path):
    graph = omnigraph.init(
        tmp_path / "g.omni", "node P { name: String @key  code: String?  x: I32? }"
    )
    graph.load({"P": [{"name": "ada", "code": "918273645546372", "x": 1}]}, index=False)
    graph.schema.apply("node P { name: String @key  code: I64?  x: I32? }", convert="P.code")
    graph.schema.apply("node P { name: String @key  code: I64? }")
    assert purge_now(graph.uri).is_done
    assert not [
        path
        for path in Path(graph.uri).rglob("*")
        if path.is_file() and b"918273645546372" in path.read_bytes()
    ]
    row = omnigraph.open(graph.uri).entity("P", "ada")
    assert row is not None
    assert row["code"] == 918273645546372


def _tag(graph: Graph, commits: list[str]) -> None:
    graph.tags.create("release", commit=commits[1])


def _branch(graph: Graph, commits: list[str]) -> None:
    graph.branches.create("trial", commit=commits[1])


def _base(graph: Graph, commits: list[str]) -> None:
    _branch(graph, commits)
    graph.schema.apply(AFTER, branch="trial")


NEEDS: dict[str, tuple[Callable[[Graph, list[str]], None], dict[str, Any], str, str]] = {
    "a branch": (_branch, {}, "branch trial has it", "delete the branch"),
    "a tag": (_tag, {}, "tag release names a commit that has it", "delete the tag"),
    "a base": (_base, {}, "a merge of main and trial would start from", "merge one of the"),
    "a number": (lambda *_: None, {"keep_commits": 3}, "keep_commits=3 keeps", "--keep-commits"),
    "an age": (lambda *_: None, {"older_than": "1d"}, "older_than=1d keeps", "--older-than"),
    "no rule": (lambda *_: None, {"keep_commits": None}, "no rule expires any commit", "say with"),
}


@pytest.mark.parametrize("need", NEEDS)
def test_a_purge_is_refused_while_somebody_needs_a_commit_that_has_it(graph, need):
    prepare, rules, what, way = NEEDS[need]
    commits = [commit.commit_id for commit in graph.commits.list()]
    prepare(graph, commits)
    handle = later(graph.uri)
    [found] = [each for each in refusal(handle, **rules) if each["what"].startswith(what)]
    assert way in found["way"]
    assert set(found["commits"]) <= set(commits) | {
        graph.snapshot(branch=b).head.commit_id for b in graph.branches.list()
    }
    with pytest.raises(NotAllowedError, match=r"what is needed cannot be purged"):
        handle.schema.purge(**{**RULES, **rules}, dry_run=True)


def test_settings_are_the_rules_of_a_purge_without_any(graph):
    graph.settings.set("maintenance.keep_commits", 1)
    graph.settings.set("maintenance.keep_days", 3)
    assert [need["reason"] for need in refusal(graph, keep_commits=None)] == [Reason.YOUNG]
    assert later(graph.uri, 4 * 86_400).schema.purge(dry_run=True).rewrites


def test_every_need_is_met_in_turn_until_the_purge_is_done(graph):
    commits = [commit.commit_id for commit in graph.commits.list()]
    _base(graph, commits)
    _tag(graph, commits)
    refusal(graph)
    graph.tags.delete("release")
    refusal(graph)
    graph.merge("trial")
    graph.branches.delete("trial")
    assert not graph.schema.purge(**RULES).is_done
    done = later(graph.uri, 2 * HOURS).schema.purge(**RULES)
    assert done.is_done
    assert files_with_needles(graph.uri) == set()
    at_rest(graph.uri, rows=True)


def test_what_only_a_branch_had_is_purged_there_and_the_rest_stays(graph):
    purge_now(graph.uri)
    graph.branches.create("trial")
    trial = AFTER.replace("age: I32?", "age: I32?  nick: String?")
    graph.schema.apply(trial, branch="trial")
    graph.mutate(
        f'query q() {{ update Person set {{ nick: "{secret("nick")}" }} where name = "ada" }}',
        branch="trial",
    )
    graph.schema.apply(AFTER, branch="trial")
    assert graph.schema.purge(**RULES).is_done, "main never had it"
    head = graph.snapshot().head.commit_id
    before = digests(graph.uri)[head]
    prepared = graph.schema.purge(branch="trial", **RULES)
    assert [(each.branch, each.type_name) for each in prepared.rewrites] == [("trial", "Person")]
    assert files_with_needles(graph.uri)
    assert later(graph.uri).schema.purge(branch="trial", **RULES).is_done
    assert files_with_needles(graph.uri) == set()
    assert digests(graph.uri)[head] == before
    assert names(omnigraph.open(graph.uri), "trial") == ["ada", "bob", "cy"]
    at_rest(graph.uri, rows=True)


def test_a_deleted_branch_that_had_it_goes_with_it(tmp_path):
    graph = furnish_secrets(str(tmp_path / "graph.omni"))
    graph.branches.create("old")
    graph.load({"Person": [{"name": "eve", "email": secret("eve")}]}, branch="old", index=False)
    graph.merge("old", delete_branch=True)
    graph.schema.apply(AFTER)
    done = purge_now(graph.uri)
    assert done.is_done
    assert files_with_needles(graph.uri) == set()
    assert names(omnigraph.open(graph.uri)) == ["ada", "bob", "cy", "eve"]
    at_rest(graph.uri, rows=True)


def test_a_branch_that_reads_files_of_main_gets_its_own_before_they_go(graph):
    # The base of both is a commit that never had it.
    graph = omnigraph.init(f"{graph.uri}2", "node Person { name: String @key }")
    graph.branches.create("trial")
    with_email = "node Person { name: String @key  email: String? }"
    for branch in ("main", "trial"):
        graph.schema.apply(with_email, branch=branch)
        rows = {"Person": [{"name": branch, "email": secret(branch)}]}
        graph.load(rows, branch=branch, index=False)
        graph.schema.apply("node Person { name: String @key }", branch=branch)
    prepared = graph.schema.purge(**RULES)
    assert {rewrite.branch for rewrite in prepared.rewrites} == {"main", "trial"}
    assert later(graph.uri).schema.purge(**RULES).is_done
    assert files_with_needles(graph.uri) == set()
    assert names(omnigraph.open(graph.uri), "trial") == ["trial"]
    graph.merge("trial")
    assert names(graph) == ["main", "trial"]
    at_rest(graph.uri, rows=True)


def test_files_of_killed_writes_are_reported_until_they_are_old(tmp_path):
    graph = furnish_secrets(str(tmp_path / "graph.omni"))
    row = {"Person": [{"name": "dot", "email": secret("dot")}]}
    cut_off(Cut(Failpoint.WRITE_AFTER_STAGE), lambda: graph.load(row, index=False))
    graph = omnigraph.open(graph.uri)
    graph.schema.apply(AFTER)
    done = purge_now(graph.uri)
    assert done.held == ()
    assert done.staged is not None
    assert done.staged.files == 1
    assert not done.is_done
    assert len(files_with_needles(graph.uri)) == 1
    assert later(graph.uri, 4 * 86_400).schema.purge(**RULES).is_done
    assert files_with_needles(graph.uri) == set()


POINTS = [point for point in Failpoint if point.startswith("cleanup.")]
CREATORS: dict[str, Callable[[Graph, str], object]] = {
    "branch": lambda graph, commit: graph.branches.create("late", commit=commit),
    "tag": lambda graph, commit: graph.tags.create("late", commit=commit),
}


@pytest.mark.parametrize("creator", CREATORS)
@pytest.mark.parametrize(
    "point",
    [
        Failpoint.CLEANUP_AFTER_PLAN,
        Failpoint.CLEANUP_AFTER_MARK,
        Failpoint.CLEANUP_AFTER_LOOK,
        Failpoint.CLEANUP_AFTER_CONFIRM,
    ],
)
def test_who_needs_a_commit_while_it_is_purged_gets_it_whole_or_is_refused(graph, creator, point):
    graph.schema.purge(**RULES)
    wanted = graph.commits.list()[3].commit_id
    before = digests(graph.uri)[wanted]
    outcome: list[bool] = []

    def create() -> None:
        try:
            CREATORS[creator](omnigraph.open(graph.uri), wanted)
        except CommitLetGoError:
            outcome.append(False)
        else:
            outcome.append(True)

    with sleeping_at(Cut(point), create):
        done = later(graph.uri).schema.purge(**RULES)
    [is_created] = outcome
    assert digest(omnigraph.open(graph.uri), wanted) == (before if is_created else LET_GO)
    assert done.is_done != is_created
    assert bool(files_with_needles(graph.uri)) == is_created
    assert (done.held != ()) == is_created
    at_rest(graph.uri)


def _work_beside(uri: str) -> None:
    other = omnigraph.open(uri)
    other.load({"Person": [{"name": "eva"}]}, index=False)
    other.branches.create("beside")
    other.load({"Person": [{"name": "fay"}]}, branch="beside", index=False)
    other.merge("beside", delete_branch=True)
    other.optimize()


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.WRITE_AFTER_PLAN,
        Failpoint.WRITE_AFTER_STAGE,
        *POINTS[:4],
        Failpoint.CLEANUP_AFTER_FILES,
    ],
)
def test_writes_and_merges_beside_a_purge_are_not_disturbed(graph, point):
    is_rewrite = point.startswith("write.")
    if not is_rewrite:
        graph.schema.purge(**RULES)
    with sleeping_at(Cut(point), lambda: _work_beside(graph.uri)):
        handle = graph if is_rewrite else later(graph.uri)
        handle.schema.purge(**RULES)
    done = later(graph.uri).schema.purge(**RULES)
    assert done.held == ()
    assert files_with_needles(graph.uri) == set()
    assert names(omnigraph.open(graph.uri)) == ["ada", "bob", "cy", "eva", "fay"]
    at_rest(graph.uri, rows=True)


@pytest.mark.usefixtures("spark")
def test_a_purge_on_spark_does_what_a_local_one_does(graph):
    prepared = graph.schema.purge(**RULES, engine="spark")
    assert prepared.rewrites
    assert later(graph.uri).schema.purge(**RULES, engine="spark").is_done
    assert files_with_needles(graph.uri) == set()
    assert names(omnigraph.open(graph.uri)) == ["ada", "bob", "cy"]
    assert_tidy(graph.uri)
    at_rest(graph.uri, rows=True)
