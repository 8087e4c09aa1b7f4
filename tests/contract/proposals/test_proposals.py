"""Proposals: who may do what to them, what voids an approval, and what a killed merge leaves."""

import threading
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFoundError,
    InvalidInputError,
    InvalidParameterError,
    LimitExceededError,
    MergeConflictError,
    NotAllowedError,
    OmnigraphError,
    ProposalNotFoundError,
    StaleHeadError,
    StorageError,
)
from omnigraph.model.ids import CommitId
from omnigraph.model.proposals import Proposal, Review, ReviewAction
from omnigraph.proposals import transitions
from omnigraph.proposals.transitions import PROPOSAL_COMMENTS_MAX
from omnigraph.storage.objects import Objects

SCHEMA: Final = "node Person { name: String @key  age: I64? }"
ADD: Final = "query q($n: String, $a: I64?) { insert Person { name: $n  age: $a } }"
COUNT: Final = "query q() { match { $p: Person } return { count($p) as n } }"

RULES: Final = """
@id("all read") permit(principal, action == Action::"read", resource);
@id("all draft") permit(principal, action in [Action::"mutate", Action::"branch_create"], resource);
@id("reviewers") permit(principal in Group::"reviewers", action == Action::"merge", resource);
"""
POLICY: Final = """
rules = "rules.cedar"
[groups]
reviewers = ["grace", "hal", "ada"]
[protected]
main = 2
"release/*" = 0
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "world.omni", SCHEMA, actor="ada")
    graph.mutate(ADD, {"n": "Ada", "a": 36})
    graph.branches.create("draft").mutate(ADD, {"n": "Bob", "a": 3})
    return graph


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "rules.cedar").write_text(RULES)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "policy.toml"


def people(graph: Graph, branch: str = "main") -> object:
    return graph.query(COUNT, branch=branch).rows()[0]["n"]


def test_a_proposal_is_made_reviewed_and_merged(graph: Graph) -> None:
    made = graph.proposals.create("draft", " Add Bob ", description="He was missing.")
    assert (made.number, made.title, made.author, made.state) == (1, "Add Bob", "ada", "open")
    assert graph.proposals.diff(1).counts["Person"].inserted == 1
    preview = graph.proposals.preview(1)
    assert (preview.changes["Person"].inserted, people(graph)) == (1, 1)
    graph.proposals.approve(1, actor="grace")
    graph.proposals.comment(1, "3?", type_name="Person", id="Bob", property="age", actor="grace")
    outcome = graph.proposals.merge(1, delete_branch=True)
    assert (outcome.deleted_source, people(graph), graph.branches.list()) == (True, 2, ("main",))

    review = graph.proposals.show(1)
    assert review.proposal.state == "merged"
    assert review.proposal.ending is not None
    assert review.proposal.ending.commit_id == outcome.commit_id
    assert [each.actor for each in review.approvals] == ["grace"]
    assert graph.commits.show(str(outcome.commit_id)).message == "merge proposal 1: Add Bob"
    # What was merged can be looked at when the branch is gone.
    assert graph.proposals.diff(1).counts["Person"].inserted == 1
    assert graph.proposals.list() == ()
    assert [each.number for each in graph.proposals.list(state=None)] == [1]


def test_records_say_all_that_they_were_told(graph: Graph) -> None:
    graph.proposals.create("draft", "Añade a Bob", description="‮مرحبا\n<b>")
    graph.proposals.approve(1, actor="grace")
    graph.proposals.comment(1, "on all", actor="hal")
    proposal = graph.proposals.comment(1, "on a row", type_name="Person", id="Bob", actor="hal")
    review = omnigraph.open(graph.uri, read_only=True).proposals.show(1)
    assert review.proposal == proposal
    assert Review.from_json(review.to_json()).to_json() == review.to_json()
    assert Proposal.from_json(proposal.to_json(), proposal.source_ref) == proposal


def test_a_later_write_to_the_source_voids_an_approval(graph: Graph) -> None:
    graph.proposals.create("draft", "Add Bob")
    seen = graph.proposals.show(1).source_commit
    graph.proposals.approve(1, commit=seen, actor="grace")
    assert [each.actor for each in graph.proposals.show(1).approvals] == ["grace"]
    graph.mutate(ADD, {"n": "Eve"}, branch="draft")
    assert graph.proposals.show(1).approvals == ()
    with pytest.raises(StaleHeadError, match="was reviewed"):
        graph.proposals.approve(1, commit=seen, actor="hal")
    graph.proposals.approve(1, actor="grace")
    assert len(graph.proposals.show(1).proposal.approvals) == 1
    graph.proposals.withdraw_approval(1, actor="grace")
    assert graph.proposals.show(1).approvals == ()
    with pytest.raises(InvalidInputError, match="has not approved"):
        graph.proposals.withdraw_approval(1, actor="grace")


def test_a_review_says_what_its_actor_may_do(graph: Graph, policy: Path) -> None:
    ada = omnigraph.open(graph.uri, actor="ada", policy=policy)
    ada.proposals.create("draft", "Add Bob")

    def may(actor: str) -> set[str]:
        review = ada.proposals.show(1, actor=actor)
        assert Review.from_json(review.to_json()).refusals == review.refusals
        assert review.actor == actor
        said = review.to_json()["may"]
        assert {action for action in said if not said[action]} == set(review.refusals)
        return {action for action in said if said[action]}

    assert may("ada") == {"comment", "close"}
    assert may("mallory") == {"comment"}
    assert may("grace") == {"approve", "comment", "close"}
    ada.proposals.approve(1, actor="grace")
    ada.proposals.approve(1, actor="hal")
    assert may("grace") == {"approve", "withdraw_approval", "comment", "close", "merge"}
    assert may("ada") == {"comment", "close", "merge"}
    assert "no rule permits" in ada.proposals.show(1, actor="mallory").refusals["merge"]
    ada.at(branch="draft").mutate(ADD, {"n": "Cy"})
    stale = ada.proposals.show(1)
    assert (len(stale.stale_approvals), "merge" in stale.refusals) == (2, True)
    ada.proposals.close(1)
    assert may("grace") == {"comment"}
    nobody = omnigraph.open(graph.uri, read_only=True).proposals.show(1)
    assert set(nobody.refusals) == set(ReviewAction)


def test_a_right_to_merge_that_excludes_a_type_is_none_to_merge_it(
    graph: Graph, tmp_path: Path
) -> None:
    rules = tmp_path / "types.cedar"
    rules.write_text(
        "permit(principal, action, resource);"
        'forbid(principal == Actor::"eve", action == Action::"merge", resource)'
        ' when { resource is Type && resource.name == "Person" };'
    )
    eve = omnigraph.open(graph.uri, actor="eve", policy=rules)
    eve.proposals.create("draft", "Add Bob")
    assert "merge" in eve.proposals.show(1).refusals
    with pytest.raises(NotAllowedError):
        eve.proposals.merge(1)
    assert "merge" not in eve.proposals.show(1, actor="ada").refusals


def test_a_source_that_moved_since_it_was_reviewed_is_not_merged(graph: Graph) -> None:
    graph.proposals.create("draft", "Add Bob")
    seen = graph.proposals.show(1).source_commit
    graph.at(branch="draft").mutate(ADD, {"n": "Cy"})
    with pytest.raises(StaleHeadError, match="was reviewed"):
        graph.proposals.merge(1, commit=seen)
    assert people(graph) == 1
    graph.proposals.merge(1, commit=graph.proposals.show(1).source_commit)
    assert people(graph) == 3


def test_a_protected_branch_takes_approved_proposals_alone(graph: Graph, policy: Path) -> None:
    ada = omnigraph.open(graph.uri, actor="ada", policy=policy)
    ada.proposals.create("draft", "Add Bob")
    with pytest.raises(NotAllowedError, match="protected, and changes by merges alone"):
        ada.mutate(ADD, {"n": "Cy"})
    with pytest.raises(NotAllowedError, match="2 approvals; this merge has 0"):
        ada.merge("draft")
    with pytest.raises(NotAllowedError, match="cannot approve"):
        ada.proposals.approve(1)
    with pytest.raises(NotAllowedError, match="no rule permits"):
        ada.proposals.approve(1, actor="mallory")
    ada.proposals.approve(1, actor="grace")
    with pytest.raises(NotAllowedError, match="this merge has 1"):
        ada.proposals.merge(1)
    assert not ada.proposals.show(1).is_approved
    ada.proposals.approve(1, actor="hal")
    assert ada.proposals.show(1).is_approved
    assert people(graph) == 1
    with pytest.raises(NotAllowedError, match="no rule permits"):
        ada.proposals.merge(1, actor="mallory")
    assert ada.proposals.merge(1).commit_id is not None
    assert people(graph) == 2


def test_who_wrote_what_would_be_merged_does_not_approve_it(graph: Graph, policy: Path) -> None:
    """Four eyes: it does not help that somebody else makes the proposal."""
    grace = omnigraph.open(graph.uri, actor="grace", policy=policy)
    grace.branches.create("side").mutate(ADD, {"n": "Grace"})
    graph.merge("side", into="draft", actor="hal")
    graph.optimize(branch="draft", actor="mallory")
    mallory = omnigraph.open(graph.uri, actor="mallory", policy=policy)
    mallory.proposals.create("draft", "Add Bob")

    # Ada wrote on the branch, grace on one that it merged, and hal merged that.
    for actor in ("ada", "grace", "hal"):
        reviewer = omnigraph.open(graph.uri, actor=actor, policy=policy)
        assert "approve" in reviewer.proposals.show(1).refusals
        with pytest.raises(NotAllowedError, match=f"{actor} wrote commits of proposal 1"):
            reviewer.proposals.approve(1)
    rules = policy.with_name("rules.cedar")
    rules.write_text(f'{RULES} permit(principal == Actor::"ivy", action, resource);')
    ivy = omnigraph.open(graph.uri, actor="ivy", policy=policy)
    ivy.proposals.approve(1)
    assert [each.actor for each in ivy.proposals.show(1).approvals] == ["ivy"]
    # An approval that an earlier release recorded does not count either.
    records = ivy.proposals._records
    head = CommitId(graph.baseline(branch="draft"))
    records.change(
        1, lambda known: transitions.approve(known, "ada", head, known.created_at, writers=())
    )
    review = ivy.proposals.show(1)
    assert ([each.actor for each in review.approvals], review.is_approved) == (["ivy"], False)
    with pytest.raises(NotAllowedError, match="2 approvals; this merge has 1"):
        ivy.proposals.merge(1)
    # What a target has already was reviewed there.
    graph.merge("side", into="main")
    grace.proposals.approve(1)
    ivy.proposals.merge(1)


def test_proposals_and_comments_are_of_who_may_read_both_branches(
    graph: Graph, policy: Path
) -> None:
    rules = policy.with_name("rules.cedar")
    hides = 'forbid(principal == Actor::"eve", action, resource == Branch::"draft");'
    rules.write_text(f"{RULES} {hides}")
    ada = omnigraph.open(graph.uri, actor="ada", policy=policy)
    eve = omnigraph.open(graph.uri, actor="eve", policy=policy)
    for propose in (
        lambda: eve.proposals.create("draft", "x"),
        lambda: ada.proposals.create("draft", "x", actor="eve"),
    ):
        with pytest.raises(BranchNotFoundError, match="branch, commit or tag draft does not exist"):
            propose()
    ada.proposals.create("draft", "Add Bob")
    for act in (
        lambda: eve.proposals.comment(1, "x"),
        lambda: ada.proposals.comment(1, "x", actor="eve"),
        lambda: ada.proposals.approve(1, actor="eve"),
        lambda: eve.proposals.show(1),
    ):
        with pytest.raises(ProposalNotFoundError):
            act()
    assert eve.proposals.list() == ()
    mallory = omnigraph.open(graph.uri, actor="mallory", policy=policy)
    assert len(mallory.proposals.comment(1, "I read it").comments) == 1


def test_a_protected_branch_starts_at_a_protected_one(graph: Graph, policy: Path) -> None:
    ada = omnigraph.open(graph.uri, actor="ada", policy=policy)
    draft, main = graph.baseline(branch="draft"), graph.baseline()
    graph.tags.create("cut", branch="draft")
    for start in (draft, "cut"):
        with pytest.raises(NotAllowedError, match="starts at a protected branch, not at draft"):
            ada.branches.create("release/1", commit=start)
    with pytest.raises(NotAllowedError, match="starts at a protected branch, not at draft"):
        ada.branches.create("release/1", branch="draft")
    with pytest.raises(NotAllowedError, match="starts at a protected branch"):
        ada.at(branch="draft").branches.create("release/1")
    ada.branches.create("release/1")
    ada.branches.create("release/2", commit=main)
    ada.branches.create("release/3", branch="release/1")
    # What was merged is the target's own; the commits on the way there are not.
    graph.merge("draft")
    with pytest.raises(NotAllowedError, match="starts at a protected branch"):
        ada.branches.create("release/4", commit=draft)
    ada.branches.create("release/4")
    ada.branches.create("other", branch="draft")


def test_a_branch_protected_without_approvals_takes_any_merge(graph: Graph, policy: Path) -> None:
    graph.branches.create("release/1")
    ada = omnigraph.open(graph.uri, actor="ada", policy=policy)
    with pytest.raises(NotAllowedError, match="changes by merges alone"):
        ada.mutate(ADD, {"n": "Cy"}, branch="release/1")
    assert ada.merge("draft", into="release/1").commit_id is not None


def test_what_an_actor_may_not_read_is_no_proposal(graph: Graph, tmp_path: Path) -> None:
    graph.proposals.create("draft", "Add Bob")
    rules = tmp_path / "main.cedar"
    rules.write_text('permit(principal, action == Action::"read", resource in Branch::"main");')
    blind = omnigraph.open(graph.uri, actor="eve", policy=rules)
    assert blind.proposals.list() == ()
    with pytest.raises(ProposalNotFoundError):
        blind.proposals.show(1)
    with pytest.raises(ProposalNotFoundError):
        blind.proposals.comment(1, "I saw nothing")


def test_the_source_is_merged_as_it_was_approved_or_not_at_all(graph: Graph) -> None:
    head = graph.snapshot(branch="draft").head.commit_id
    graph.mutate(ADD, {"n": "Eve"}, branch="draft")
    with pytest.raises(StaleHeadError, match="expected "):
        graph.merge("draft", expect_source=head)
    assert people(graph) == 1


def test_a_conflict_is_decided_in_the_proposal(graph: Graph) -> None:
    graph.mutate(ADD, {"n": "Bob", "a": 4})
    graph.proposals.create("draft", "Add Bob")
    assert graph.proposals.preview(1).conflict_count == 1
    with pytest.raises(MergeConflictError):
        graph.proposals.merge(1)
    assert graph.proposals.show(1).proposal.state == "open"
    graph.proposals.merge(1, resolve="theirs")
    age = graph.query('query q() { match { $p: Person {name: "Bob"} } return { $p.age as a } }')
    assert age.rows() == [{"a": 3}]


def test_a_merge_that_could_not_end_its_proposal_is_found(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.proposals.create("draft", "Add Bob")

    def fail(*_: object, **__: object) -> bool:
        message = "the disk is full"
        raise StorageError(message)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "update", fail)
        with pytest.raises(StorageError):
            graph.proposals.merge(1, delete_branch=True)
    assert (graph.proposals.show(1).proposal.state, people(graph)) == ("open", 2)
    landed = graph.snapshot().head
    outcome = graph.proposals.merge(1, delete_branch=True)
    ending = graph.proposals.show(1).proposal.ending
    assert ending is not None
    assert (ending.commit_id, ending.source_commit) == (landed.commit_id, landed.merged_parent)
    assert (outcome.commit_id, outcome.deleted_source, people(graph)) == (None, True, 2)


def test_a_branch_that_was_made_again_is_another_one(graph: Graph) -> None:
    graph.proposals.create("draft", "Add Bob")
    graph.branches.delete("draft")
    graph.branches.create("draft").mutate(ADD, {"n": "Mallory"})
    assert graph.proposals.show(1).source_commit is None
    grace = omnigraph.open(graph.uri, actor="grace").proposals
    for act in (grace.approve, grace.merge, grace.diff, grace.preview):
        with pytest.raises(BranchNotFoundError, match="was deleted"):
            act(1)
    assert graph.proposals.close(1).state == "closed"


def test_proposals_made_at_once_have_numbers_of_their_own(graph: Graph) -> None:
    threads = [
        threading.Thread(target=graph.proposals.create, args=("draft", f"Try {index}"))
        for index in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = graph.proposals.list()
    assert [each.number for each in listed] == [6, 5, 4, 3, 2, 1]
    assert {each.title for each in listed} == {f"Try {index}" for index in range(6)}


def test_comments_made_at_once_are_all_kept(graph: Graph) -> None:
    graph.proposals.create("draft", "Add Bob")
    threads = [
        threading.Thread(target=graph.proposals.comment, args=(1, f"remark {index}"))
        for index in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    comments = graph.proposals.show(1).proposal.comments
    assert [each.number for each in comments] == [1, 2, 3, 4, 5, 6]
    assert {each.text for each in comments} == {f"remark {index}" for index in range(6)}


WRONG: Final = {
    "no such branch": (BranchNotFoundError, lambda p: p.create("drft", "x")),
    "itself": (InvalidInputError, lambda p: p.create("draft", "x", into="draft")),
    "nothing to merge": (InvalidInputError, lambda p: p.create("main", "x", into="draft")),
    "a blank title": (InvalidParameterError, lambda p: p.create("draft", " ")),
    "a title of two lines": (InvalidParameterError, lambda p: p.create("draft", "a\nb")),
    "a long title": (InvalidParameterError, lambda p: p.create("draft", "x" * 201)),
    "a long description": (
        InvalidParameterError,
        lambda p: p.create("draft", "x", description="x" * 10_001),
    ),
    "no text": (InvalidParameterError, lambda p: p.comment(1, "\ud800")),
    "a blank comment": (InvalidParameterError, lambda p: p.comment(1, " \n")),
    "half a row": (InvalidParameterError, lambda p: p.comment(1, "x", type_name="Person")),
    "no such proposal": (ProposalNotFoundError, lambda p: p.show(2)),
    "no number": (InvalidParameterError, lambda p: p.show("1")),
    "no such state": (InvalidParameterError, lambda p: p.list(state="done")),
    "a reserved actor": (InvalidParameterError, lambda p: p.close(1, actor="omnigraph:x")),
    "a wrong resolution": (InvalidInputError, lambda p: p.merge(1, resolve="mine")),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused_and_changes_nothing(graph: Graph, case: str) -> None:
    graph.proposals.create("draft", "Add Bob")
    before = graph.proposals.show(1)
    error, act = WRONG[case]
    with pytest.raises(error) as refused:
        act(graph.proposals)
    assert isinstance(refused.value, OmnigraphError)
    assert (graph.proposals.show(1), len(graph.proposals.list(state=None))) == (before, 1)


def test_what_has_ended_takes_comments_alone(graph: Graph) -> None:
    graph.proposals.create("draft", "Add Bob")
    graph.proposals.close(1)
    for act in (graph.proposals.approve, graph.proposals.close, graph.proposals.merge):
        with pytest.raises(InvalidInputError, match="is closed"):
            act(1, actor="grace")
    assert graph.proposals.comment(1, "a pity").comments[0].text == "a pity"


def test_a_handle_without_an_actor_or_a_right_to_write_reviews_nothing(graph: Graph) -> None:
    graph.proposals.create("draft", "Add Bob")
    with pytest.raises(InvalidParameterError, match="needs an actor"):
        omnigraph.open(graph.uri).proposals.approve(1)
    with pytest.raises(NotAllowedError, match="read-only"):
        omnigraph.open(graph.uri, read_only=True).proposals.comment(1, "x", actor="eve")


def test_comments_are_bounded(graph: Graph) -> None:
    proposal = graph.proposals.create("draft", "Add Bob")
    now = proposal.created_at
    for _ in range(PROPOSAL_COMMENTS_MAX):
        proposal = transitions.comment(proposal, "eve", "x", None, now)
    with pytest.raises(LimitExceededError, match="the limit"):
        transitions.comment(proposal, "eve", "x", None, now)
