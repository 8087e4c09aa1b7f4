"""Settings: which keys and values are accepted, and what stored values mean."""

from datetime import timedelta

import pytest

from omnigraph.errors import FormatError, InvalidParameterError
from omnigraph.model.query_limits import QueryLimits
from omnigraph.model.settings import (
    OptimizeMode,
    SettingKey,
    Settings,
    SettingSource,
    describe_settings,
    require_setting,
    value_of,
)


def test_what_is_not_stored_has_its_default():
    maintenance = Settings.of({}).maintenance
    assert (maintenance.optimize, maintenance.keep_commits, maintenance.keep_days) == (
        OptimizeMode.AUTO,
        1000,
        30,
    )


def test_what_is_stored_is_used():
    stored = {"maintenance.optimize": "off", "maintenance.keep_commits": 0, "else.where": [1]}
    maintenance = Settings.of(stored).maintenance
    assert (maintenance.optimize, maintenance.keep_commits, maintenance.keep_days) == (
        OptimizeMode.OFF,
        0,
        30,
    )


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("maintenance.keep_day", "maintenance.keep_days"),
        ("maintenence.optimise", "maintenance.optimize"),
        ("optimize", "maintenance.optimize"),
        ("keep_commit", "maintenance.keep_commits"),
    ],
)
def test_an_unknown_key_names_the_nearest(text, near):
    with pytest.raises(InvalidParameterError) as told:
        SettingKey.parse(text)
    assert text in told.value.message
    assert f"did you mean {near}?" in told.value.hint


def test_a_key_that_is_like_no_other_names_all():
    with pytest.raises(InvalidParameterError) as told:
        SettingKey.parse("x")
    assert "did you mean" not in told.value.hint
    assert all(key in told.value.hint for key in SettingKey)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (SettingKey.OPTIMIZE, "on"),
        (SettingKey.OPTIMIZE, "AUTO"),
        (SettingKey.OPTIMIZE, True),
        (SettingKey.OPTIMIZE, 1),
        (SettingKey.OPTIMIZE, None),
        (SettingKey.KEEP_COMMITS, "10"),
        (SettingKey.KEEP_COMMITS, -1),
        (SettingKey.KEEP_COMMITS, 1.0),
        (SettingKey.KEEP_COMMITS, True),
        (SettingKey.KEEP_COMMITS, 1_000_000_001),
        (SettingKey.KEEP_DAYS, 36_501),
        (SettingKey.KEEP_DAYS, [1]),
    ],
)
def test_a_wrong_value_is_refused_with_the_key_and_what_is_accepted(key, value):
    with pytest.raises(InvalidParameterError) as told:
        require_setting(key, value)
    accepted = "auto or off" if key is SettingKey.OPTIMIZE else "a whole number from 0 to"
    assert str(key) in told.value.message
    assert accepted in told.value.message
    assert told.value.details["name"] == key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (SettingKey.QUERY_TIMEOUT, 30),
        (SettingKey.QUERY_TIMEOUT, "soon"),
        (SettingKey.QUERY_MEMORY, 1 << 30),
        (SettingKey.QUERY_MEMORY, "1MB"),
        (SettingKey.QUERY_MAX_ROWS, 0),
        (SettingKey.QUERY_MAX_ROWS, "10"),
    ],
)
def test_a_limit_that_is_none_of_its_kind_is_refused(key, value):
    with pytest.raises(InvalidParameterError, match="has to be none, or a"):
        require_setting(key, value)


def test_limits_of_queries_are_read_as_they_are_written():
    stored = {"query.timeout": "2m", "query.memory": "1GiB", "query.max_rows": 5}
    limits = Settings.of(stored).query
    assert limits == QueryLimits(timedelta(minutes=2), 1 << 30, 5)
    assert Settings.of({}).query == QueryLimits()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (SettingKey.OPTIMIZE, "auto"),
        (SettingKey.OPTIMIZE, "off"),
        (SettingKey.KEEP_COMMITS, 0),
        (SettingKey.KEEP_COMMITS, 1_000_000_000),
        (SettingKey.KEEP_DAYS, 36_500),
        (SettingKey.QUERY_TIMEOUT, "2m"),
        (SettingKey.QUERY_TIMEOUT, "none"),
        (SettingKey.QUERY_MEMORY, "512MB"),
        (SettingKey.QUERY_MAX_ROWS, 10_000),
        (SettingKey.QUERY_MAX_ROWS, "none"),
    ],
)
def test_a_right_value_is_accepted(key, value):
    assert require_setting(key, value) == value


def test_a_value_of_a_newer_release_is_not_replaced_by_the_default():
    stored = {"maintenance.keep_days": "for ever"}
    with pytest.raises(FormatError, match=r"maintenance\.keep_days is 'for ever'") as told:
        Settings.of(stored)
    assert "upgrade omnigraph" in told.value.hint
    assert value_of(stored, SettingKey.KEEP_COMMITS) == 1000


def test_a_list_has_every_setting_and_warns_of_those_it_does_not_know():
    listed = describe_settings(
        {"maintenance.keep_days": 7, "maintenance.optimize": "nightly", "search.refresh": {"a": 1}}
    )
    optimize, commits, days, *_, other = listed
    limits = [setting for setting in listed if setting.key.startswith("query.")]
    assert {(limit.value, limit.default, limit.warning) for limit in limits} == {
        ("none", "none", None)
    }
    assert (optimize.value, optimize.source) == ("nightly", SettingSource.GRAPH)
    assert optimize.warning is not None
    assert "accepts auto or off" in optimize.warning
    assert (commits.value, commits.source, commits.warning) == (1000, SettingSource.DEFAULT, None)
    assert (days.value, days.default, days.source) == (7, 30, SettingSource.GRAPH)
    assert (other.key, other.value, other.default) == ("search.refresh", {"a": 1}, None)
    assert other.warning == "this release does not know the setting search.refresh, and ignores it"
