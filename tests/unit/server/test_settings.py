"""Settings: what is wrong is reported with its line and its key."""

import pytest

from omnigraph.errors import InvalidInputError, NotFoundError
from omnigraph.server.identity import require_safe_address
from omnigraph.server.settings import read_settings


def wrong(tmp_path, text):
    path = tmp_path / "omnigraph.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError) as refused:
        read_settings(path)
    return refused.value.message


def test_a_file_is_read_and_the_environment_and_options_come_first(tmp_path, monkeypatch):
    path = tmp_path / "omnigraph.toml"
    path.write_text('port = 9000\nhost = "::1"\n[graphs.world]\nuri = "world.omni"\n')
    monkeypatch.setenv("OMNIGRAPH_SERVER_PORT", "9001")
    settings = read_settings(path, state=tmp_path)

    assert (settings.port, settings.host, settings.state) == (9001, "::1", tmp_path)
    assert settings.graphs["world"].uri == "world.omni"
    assert settings.token_file == tmp_path / "tokens.json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prt = 1\n", ":1: prt: no such setting"),
        ('host = "x"\n[limits]\nreads = 0\n', ":3: limits.reads: "),
        ("[graphs.a]\nread_only = true\n", ":1: graphs.a.uri: Field required"),
        ('[limits]\nquery_timeout = "soon"\n', ":2: limits.query_timeout: "),
        ("[jwt]\njwks = 3\n", ":2: jwt.jwks: "),
        ("port = \n", "is not TOML"),
        ('[graphs."../x"]\nuri = "x"\n', "cannot be the name of a graph"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(tmp_path, text, expected):
    assert expected in wrong(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"nothing\.toml"):
        read_settings(tmp_path / "nothing.toml")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", "::"])
def test_requests_without_tokens_are_of_this_machine_only(host):
    with pytest.raises(InvalidInputError, match="this machine only"):
        require_safe_address(read_settings(None, host=host, allow_anonymous=True))
    require_safe_address(read_settings(None, host=host))
    require_safe_address(read_settings(None, host="127.0.0.1", allow_anonymous=True))
