"""Logs: each record is one line of JSON."""

import json
import logging
import sys

from omnigraph.server.logs import JsonLines, write_fields

log = logging.getLogger("omnigraph.server.test")


def lines(caplog):
    return [JsonLines().format(record) for record in caplog.records]


def test_a_failure_is_one_line_with_its_stack_as_a_field(caplog):
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        fields = {"request_id": "abc", "message": "failed"}
        write_fields(log, logging.ERROR, fields, exc_info=sys.exc_info())

    [line] = lines(caplog)
    assert "\n" not in line
    found = json.loads(line)
    assert (found["request_id"], found["level"]) == ("abc", "error")
    assert "ZeroDivisionError" in found["stack"]


def test_any_other_record_is_one_line_too(caplog):
    log.warning("two\nlines of %s", "text")

    [line] = lines(caplog)
    assert json.loads(line)["message"] == "two\nlines of text"
    assert "\n" not in line
