"""Each failpoint is one place in the source, so that a crash loop over them misses nothing."""

import ast
from collections import Counter

import pytest

from omnigraph.failpoints import Failpoint
from tests.support.sources import Source, calls, every_source


def hits(source: Source) -> list[str]:
    """What a module passes to `hit`: the member's name, or the text of what is no member."""
    found = []
    for name, call in calls(source.tree):
        if name.rpartition(".")[2] == "hit":
            arguments = [ast.unparse(each) for each in (*call.args, *call.keywords)]
            found.append(", ".join(arguments).removeprefix("Failpoint."))
    return found


def passed() -> Counter[str]:
    others = [each for each in every_source() if each.path != "failpoints.py"]
    return Counter(each for source in others for each in hits(source))


def test_every_failpoint_is_hit_at_exactly_one_place():
    assert passed() == Counter(each.name for each in Failpoint)


def test_a_failpoint_is_named_as_it_is_spelt():
    for each in Failpoint:
        assert each.value.replace(".", "_").upper() == each.name
    assert list(Failpoint.__members__) == [each.name for each in Failpoint]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hit(Failpoint.APPLY_AFTER_COMMIT)", ["APPLY_AFTER_COMMIT"]),
        ("failpoints.hit(failpoints.Failpoint.X)", ["failpoints.Failpoint.X"]),
        ("hit(point)", ["point"]),
        ("hit('apply.after_commit')", ["'apply.after_commit'"]),
        ("for p in points:\n    hit(p)", ["p"]),
        ("hit(Failpoint.A)\nhit(Failpoint.A)", ["A", "A"]),
        ("hit()", [""]),
    ],
)
def test_the_check_sees_what_is_passed(text, found):
    assert hits(Source.parse("graph.py", text)) == found


def test_no_one_arms_a_failpoint_in_the_product():
    arming = [
        each.path
        for each in every_source()
        for name, _ in calls(each.tree)
        if name.rpartition(".")[2] in ("arm", "arm_from_environment")
    ]

    assert [each for each in arming if each != "failpoints.py"] == []
