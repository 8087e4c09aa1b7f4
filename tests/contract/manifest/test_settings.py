"""Stored settings: changed on condition, by any number of processes, and read seldom."""

import json
from collections.abc import Callable
from functools import partial

import pytest

import omnigraph
from omnigraph.errors import (
    ErrorCode,
    FormatError,
    InvalidParameterError,
    NotAllowedError,
    StorageError,
)
from omnigraph.graph import Graph
from omnigraph.maintenance.checking.report import Invariant
from omnigraph.manifest.layout import SETTINGS
from omnigraph.manifest.settings import SETTINGS_AGE_SECONDS_MAX, StoredSettings
from omnigraph.model.settings import SettingKey
from tests.support.clocks import FakeClock
from tests.support.concurrency import at_once

SCHEMA = "node Person { name: String @key }"


@pytest.fixture(params=["local", "s3"])
def graph(request: pytest.FixtureRequest, tmp_path) -> Graph:
    if request.param == "local":
        return omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    return omnigraph.init(f"s3://{request.getfixturevalue('s3_bucket')}/graph.omni", SCHEMA)


@pytest.fixture
def store(graph: Graph) -> Callable[[object], None]:
    """Puts another object in the place of the settings."""

    def put(record: object) -> None:
        data = record if isinstance(record, bytes) else json.dumps(record).encode()
        graph._store.objects.put(SETTINGS, data)

    return put


def stored(graph: Graph) -> dict[str, object]:
    found = graph._store.objects.read(SETTINGS)
    assert found is not None
    record: dict[str, object] = json.loads(found.data)
    return record


def test_a_setting_is_set_and_unset(graph):
    assert graph.settings.get("maintenance.keep_days") == 30
    assert graph.settings.set("maintenance.keep_days", 7).value == 7
    assert omnigraph.open(graph.uri, read_only=True).settings.get("maintenance.keep_days") == 7
    assert graph.settings.unset("maintenance.keep_days").value == 30
    assert omnigraph.open(graph.uri).settings.get("maintenance.keep_days") == 30
    assert stored(graph) == {"format": 1, "settings": {}}


def test_unsetting_what_is_not_set_writes_nothing(graph):
    graph.settings.unset("maintenance.optimize")
    assert graph._store.objects.read(SETTINGS) is None


def test_what_is_refused_changes_nothing(graph):
    graph.settings.set("maintenance.optimize", "off")
    before = stored(graph)
    with pytest.raises(InvalidParameterError, match="auto or off"):
        graph.settings.set("maintenance.optimize", "on")
    with pytest.raises(InvalidParameterError, match="is not a valid setting"):
        graph.settings.set("maintenance.optimise", "off")
    with pytest.raises(NotAllowedError):
        omnigraph.open(graph.uri, read_only=True).settings.set("maintenance.optimize", "auto")
    with pytest.raises(NotAllowedError):
        graph.at(commit=graph.snapshot().head.commit_id).settings.unset("maintenance.optimize")
    assert stored(graph) == before


def test_changes_of_different_settings_at_once_all_hold(graph):
    def change(key: str, values: range) -> None:
        other = omnigraph.open(graph.uri)
        for value in values:
            other.settings.set(key, value)

    keys = ["maintenance.keep_commits", "maintenance.keep_days"]
    at_once([partial(change, key, range(1, 6)) for key in keys])
    assert [graph.settings.get(key) for key in keys] == [5, 5]


def test_what_a_newer_release_stored_is_preserved_and_ignored(graph, store):
    store({"format": 1, "settings": {"search.refresh": "hourly"}, "made_by": "a newer release"})
    graph.settings.set("maintenance.keep_days", 7)
    assert stored(graph) == {
        "format": 1,
        "made_by": "a newer release",
        "settings": {"search.refresh": "hourly", "maintenance.keep_days": 7},
    }
    assert graph.settings.list()[-1].warning is not None
    report = graph.check(rows=False)
    assert report.is_sound
    assert [note.subject for note in report.notes] == ["setting search.refresh"]


@pytest.mark.parametrize("record", [b"{", b"\xff", [], {"format": 1}, {"format": 1, "settings": 3}])
def test_settings_that_cannot_be_read_are_an_error_and_a_finding(graph, store, record):
    store(record)
    for use in (graph.settings.list, partial(graph.settings.set, "maintenance.keep_days", 7)):
        with pytest.raises(StorageError, match="cannot be read") as told:
            use()
        assert told.value.code is ErrorCode.CORRUPTED
    [finding] = graph.check(rows=False).findings
    assert (finding.invariant, finding.place) == (Invariant.SETTING, SETTINGS)


def test_settings_in_a_newer_form_are_refused_and_kept(graph, store):
    store({"format": 2, "settings": {}})
    with pytest.raises(FormatError, match="upgrade omnigraph"):
        graph.settings.set("maintenance.keep_days", 7)
    assert stored(graph) == {"format": 2, "settings": {}}


def test_a_value_that_is_not_accepted_is_found_by_a_check(graph, store):
    store({"format": 1, "settings": {"maintenance.optimize": "nightly"}})
    with pytest.raises(FormatError):
        graph.settings.get("maintenance.optimize")
    [finding] = graph.check(rows=False).findings
    assert finding.subject == "setting maintenance.optimize"
    graph.settings.unset("maintenance.optimize")
    assert graph.check(rows=False).is_sound


def test_settings_are_read_once_in_some_seconds(graph):
    clock = FakeClock()
    settings = StoredSettings(graph._store.objects, clock)
    meter = graph._store.meter
    meter.take()
    assert {settings.current().maintenance.keep_days for _ in range(5)} == {30}
    assert meter.take().reads == 1
    graph.settings.set("maintenance.keep_days", 7)
    assert settings.current().maintenance.keep_days == 30
    clock.sleep(SETTINGS_AGE_SECONDS_MAX)
    assert settings.current().maintenance.keep_days == 7


def test_who_changes_a_setting_sees_the_change_at_once(graph):
    settings = StoredSettings(graph._store.objects, FakeClock())
    assert settings.current().maintenance.keep_days == 30
    settings.set(SettingKey.KEEP_DAYS, 7)
    assert settings.current().maintenance.keep_days == 7
