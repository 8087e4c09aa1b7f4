"""Tokens: only digests are stored, and every process sees a change at once."""

from datetime import timedelta

import pytest

from omnigraph.errors import InvalidInputError, InvalidParameterError, NotFoundError
from omnigraph.server.tokens import TokenFile
from tests.support.clocks import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def tokens(tmp_path, clock):
    return TokenFile(tmp_path / "state" / "tokens.json", clock)


def test_a_token_names_its_actor_and_is_stored_as_a_digest(tokens, tmp_path):
    text, token = tokens.create("ada")
    path = tmp_path / "state" / "tokens.json"

    assert tokens.find(text) == token
    assert text.rpartition("_")[2] not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_what_is_almost_a_token_is_none(tokens):
    text, token = tokens.create("ada")
    for wrong in (text[:-1], text + "x", text.upper(), f"og_{token.token_id}_", "", "og_", "ö"):
        assert tokens.find(wrong) is None


def test_a_token_expires(tokens, clock):
    text, _ = tokens.create("ada", lifetime=timedelta(days=1))
    assert tokens.find(text)
    clock.sleep(timedelta(days=1).total_seconds())
    assert tokens.find(text) is None


def test_a_token_that_another_process_revokes_is_invalid_at_once(tokens, tmp_path, clock):
    text, token = tokens.create("ada")
    assert tokens.find(text)
    TokenFile(tmp_path / "state" / "tokens.json", clock).revoke(token.token_id)
    assert tokens.find(text) is None
    with pytest.raises(NotFoundError):
        tokens.revoke("nothing")


def test_strange_actors_and_files_are_refused(tokens, tmp_path):
    for actor in ("", "omnigraph:recovery", "a\nb"):
        with pytest.raises(InvalidParameterError):
            tokens.create(actor)
    with pytest.raises(InvalidParameterError):
        tokens.create("ada", lifetime=timedelta(0))
    tokens.create("ada")
    (tmp_path / "state" / "tokens.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="is not a token file"):
        tokens.list()
