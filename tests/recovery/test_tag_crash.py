"""Creating a tag, cut off anywhere: it is there or not, and stands in nobody's way."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import Failpoint
from tests.support.crashes import (
    Cut,
    assert_next_writes_work,
    at_rest,
    cut_off,
    put_to_death,
    trace,
)
from tests.support.writers import furnished

_numbers = count()


@pytest.fixture
def local(tmp_path: Path) -> Callable[[], str]:
    return lambda: furnished(str(tmp_path / f"{next(_numbers)}.omni")).uri


def create(uri: str) -> None:
    omnigraph.open(uri).tags.create("v1")


def raised(cut: Cut, work: Callable[[str], None], uri: str) -> None:
    cut_off(cut, lambda: work(uri))


def cuts(uri: str) -> list[Cut]:
    return [each for each in trace(lambda: create(uri)) if each.point.startswith("tag.")]


def test_the_loop_passes_every_failpoint_of_tags(local):
    assert {each.point for each in cuts(local())} == {
        each for each in Failpoint if each.startswith("tag.")
    }


@pytest.mark.parametrize("kill", [raised, put_to_death], ids=["raised", "killed"])
def test_a_tag_that_was_put_is_there(local, kill):
    for cut in cuts(local()):
        uri = local()
        kill(cut, create, uri)
        graph = omnigraph.open(uri)
        assert graph.tags.show("v1").commit_id == graph.snapshot().head.commit_id
        at_rest(uri)
        assert graph.check(rows=False).is_sound
        graph.tags.delete("v1")
        create(uri)
        assert_next_writes_work(uri)


@pytest.mark.parametrize("kind", ["tags", "branches"])
def test_a_tag_and_a_branch_of_one_name_are_found_and_either_can_be_deleted(local, kind):
    uri = local()
    graph = omnigraph.open(uri)
    objects = graph._store.objects
    graph.branches.create("v1")
    branch = objects.read("__branches/v1.json")
    assert branch is not None
    objects.delete("__branches/v1.json")
    # The branch's creator looked for a tag before this one looks for a branch, and is killed.
    cut_off(Cut(Failpoint.TAG_AFTER_PUT), lambda: create(uri))
    objects.put("__branches/v1.json", branch.data)

    [finding] = graph.check(rows=False).findings
    assert finding.subject == "tag v1"
    # Where both could be meant, the branch is; a commit can only be the tag.
    assert graph.point("v1").branch == "v1"
    assert graph.at(commit="v1").read_only
    getattr(graph, kind).delete("v1")
    assert graph.check(rows=False).is_sound
