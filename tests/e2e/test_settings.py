"""`omnigraph settings` as a person meets it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.model.settings import SettingKey
from tests.support.commands import Answer

Run = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "graph.omni"
    omnigraph.init(path, "node Person { name: String @key }")
    return path


@pytest.fixture
def run(here: Run, store: Path) -> Run:
    return lambda *arguments: here(*arguments, "--store", str(store))


def test_a_setting_is_listed_set_printed_and_unset(run: Run) -> None:
    listing = run("settings", "list").out
    [days] = [line for line in listing.splitlines() if line.startswith("maintenance.keep_days")]
    assert " ".join(days.split()).startswith("maintenance.keep_days 30 default 30 a whole")
    told = run("settings", "set", "maintenance.keep_days", "7")
    assert told.code == Exit.DONE
    assert "value    7" in told.out
    assert run("settings", "get", "maintenance.keep_days").out == "7\n"
    assert run("settings", "set", "maintenance.optimize", "off", "--json").json == {
        "key": "maintenance.optimize",
        "value": "off",
        "default": "auto",
        "source": "graph",
        "accepted": "auto or off",
        "warning": None,
    }
    listed = {each["key"]: each["source"] for each in run("settings", "list", "--json").json}
    assert {key for key, source in listed.items() if source == "graph"} == {
        "maintenance.optimize",
        "maintenance.keep_days",
    }
    assert listed.keys() == set(SettingKey)
    assert run("settings", "unset", "maintenance.keep_days", "--json").json["value"] == 30
    told = run("settings", "get", "maintenance.keep_days", "--json")
    assert told.json == {"key": "maintenance.keep_days", "value": 30}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "maintenance.keep_day"], "did you mean maintenance.keep_days?"),
        (["set", "keep_days", "7"], "did you mean maintenance.keep_days?"),
        (["unset", "nonsense"], "the settings are maintenance.optimize"),
        (["set", "maintenance.keep_days", "soon"], "has to be a whole number from 0 to 36500"),
        (["set", "maintenance.keep_days", "7.5"], "and '7.5' is not"),
        (["set", "maintenance.keep_days", "40000"], "and 40000 is not"),
        (["set", "query.timeout", "30"], "has to be none, or a duration such as 30s"),
        (["set", "query.memory", "much"], "has to be none, or a size such as 512MB"),
        (["set", "maintenance.optimize", "1"], "has to be auto or off, and 1 is not"),
    ],
)
def test_a_mistake_is_named_with_the_way_out(run: Run, arguments: list[str], said: str) -> None:
    told = run("settings", *arguments)
    assert (told.code, told.out) == (Exit.INVALID, "")
    assert said in told.err
    assert run("settings", *arguments, "--json").code == Exit.INVALID


def test_a_negative_number_is_refused(run: Run) -> None:
    told = run("settings", "set", "maintenance.keep_commits", "--", "-1")
    assert told.code != Exit.DONE


def test_what_a_newer_release_set_is_listed_with_a_warning(run: Run, store: Path) -> None:
    record = {"format": 1, "settings": {"search.refresh": "hourly"}}
    (store / "__settings.json").write_text(json.dumps(record))
    told = run("settings", "list")
    assert (told.code, "search.refresh" in told.out) == (Exit.DONE, True)
    assert "warning: this release does not know the setting search.refresh" in told.err
