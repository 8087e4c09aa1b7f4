"""The feed of changes while it is awaited: who may no longer read gets nothing more."""

import json
import threading
from datetime import timedelta

import pytest

import omnigraph
from tests.contract.server.test_http import ADD, mutate, problem
from tests.support.served import serving, settings_for

EVENTS = {"Accept": "text/event-stream"}
ALL = "permit(principal, action, resource);\n"


@pytest.fixture
def served(tmp_path):
    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    rules = tmp_path / "rules.cedar"
    rules.write_text(ALL)
    settings = settings_for(tmp_path, {"world": str(tmp_path / "world")}, policy=rules)
    with serving(settings) as running:
        yield running


def revoke(served, token):
    served.tokens().revoke(token.token_id)


def forbid(served, _):
    rules = f'{ALL}forbid(principal == Actor::"eve", action, resource);\n'
    served.service.settings.policy.write_text(rules)


def wait_for_expiry(*_):
    """The token of these tests expires by itself."""


ENDS = {
    "revoked": (revoke, None, "unauthenticated"),
    "expired": (wait_for_expiry, timedelta(seconds=2), "unauthenticated"),
    "forbidden by a new policy": (forbid, None, "graph_not_found"),
}


@pytest.mark.parametrize(("end", "lifetime", "code"), ENDS.values(), ids=ENDS.keys())
def test_an_event_stream_ends_with_the_right_to_read_it(served, end, lifetime, code):
    text, token = served.tokens().create("eve", lifetime=lifetime)
    with (
        served.client() as ada,
        served.client(text) as eve,
        eve.stream("GET", "/graphs/world/changes", headers=EVENTS) as events,
    ):
        assert events.status_code == 200
        end(served, token)
        lines = [line for line in events.iter_lines() if line]
        mutate(ada, ADD, {"n": "unseen"})

    assert lines[-2] == "event: problem"
    assert json.loads(lines[-1].removeprefix("data: "))["code"] == code
    assert not any("unseen" in line for line in lines)


@pytest.mark.parametrize(("end", "lifetime", "code"), ENDS.values(), ids=ENDS.keys())
def test_a_request_that_waits_ends_with_the_right_to_read(served, end, lifetime, code):
    text, token = served.tokens().create("eve", lifetime=lifetime)
    with served.client(text) as eve:
        newest = eve.get("/graphs/world/changes").json()["cursor"]
        ending = threading.Timer(0.5, end, (served, token))
        ending.start()
        answer = eve.get("/graphs/world/changes", params={"after": newest, "wait": 20})
        ending.join()

    problem(answer, 404 if code == "graph_not_found" else 401, code)
