"""Random changes to random graphs break what trying everything says they break."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from omnigraph.choices import EngineName
from omnigraph.engine.protocol import Engine
from omnigraph.integrity.violations import IntegrityReport, Rule
from tests.contract.integrity.builders import World, world
from tests.contract.integrity.naive import Broken, counts
from tests.contract.integrity.random_changes import worlds

slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

EXAMPLES: Final = {
    EngineName.LOCAL: slow_to_draw.max_examples,
    EngineName.SPARK: slow_to_draw.max_examples // 10,
}
"""A change costs a local engine milliseconds, and Spark seconds."""


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> World:
    """A place for many graphs."""
    where: Path = tmp_path_factory.mktemp("graphs")
    return world(where, engine)


def counted(report: IntegrityReport) -> dict[Broken, int]:
    return {
        (str(each.rule), each.type_name, ",".join(each.properties)): count
        for each, count in report.counts.items()
    }


@pytest.mark.hypothesis
def test_every_violation_is_found_and_no_other(anywhere: World):
    @settings(slow_to_draw, max_examples=EXAMPLES[anywhere.engine.name])
    @given(worlds(), st.booleans())
    def holds(made, indexed):
        catalog, committed, change = made
        report = anywhere.check(catalog, committed, change, indexed=indexed)

        assert counted(report) == counts(catalog, committed, change)
        assert len(report.violations) == report.total

    holds()


@pytest.mark.hypothesis
def test_a_graph_that_is_right_may_be_written_again_as_it_is(anywhere: World):
    @settings(slow_to_draw, max_examples=EXAMPLES[anywhere.engine.name] // 2)
    @given(worlds())
    def holds(made):
        catalog, committed, change = made
        again = type(change)(committed)
        assert anywhere.check(catalog, committed, again).is_clean
        overwrite = type(change)(committed, overwrite=tuple(committed))
        assert anywhere.check(catalog, committed, overwrite).is_clean

    holds()


def test_random_changes_break_every_rule():
    unbroken = {str(each) for each in Rule}

    def breaks_the_last(made):
        unbroken.difference_update(broken[0] for broken in counts(*made))
        return not unbroken

    find(
        worlds(),
        breaks_the_last,
        settings=settings(slow_to_draw, max_examples=2000, phases=[Phase.generate]),
    )
