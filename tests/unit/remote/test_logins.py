"""The user's configuration: what is wrong is named by line and key, and tokens stay secret."""

import pytest

from omnigraph.errors import InvalidInputError, NotFoundError, StorageError
from omnigraph.remote.addresses import Address
from omnigraph.remote.logins import (
    config_path,
    find_token,
    forget_login,
    read_config,
    store_login,
)

WORLD = Address.parse("https://host.example/graphs/world")


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_CONFIG", str(tmp_path / "folder" / "config.toml"))
    return config_path()


def test_a_login_is_stored_found_and_forgotten(path):
    assert find_token(WORLD) is None
    assert store_login(WORLD, "og_secret", "work") == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert find_token(WORLD) == "og_secret"
    assert read_config().profile("work").store == str(WORLD)
    assert "og_secret" not in repr(read_config())
    # Another profile of the same server has the same token.
    store_login(Address.parse("https://host.example/graphs/other"), None, 'a "b"')
    assert set(read_config().profiles) == {"work", 'a "b"'}
    assert (forget_login(WORLD), forget_login(WORLD)) == (True, False)
    assert find_token(WORLD) is None
    assert read_config().profile("work").store == str(WORLD)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[profile.a]\n", ":1: profile: no such section"),
        ("[tokens]\n\n[profiles.a]\nstore = 3\n", ":4: profiles.a.store: it has to name a graph"),
        ('[profiles.a]\nbranch = "b"\n', ":1: profiles.a.store: it has to name a graph"),
        ('[profiles.a]\nstore = "x"\nbranch = 1\n', ":3: profiles.a.branch: it has to name"),
        ('[profiles.a]\nstore = "x"\ntoken = "y"\n', ":3: profiles.a.token: no such setting"),
        ('[tokens]\nhost = ["x"]\n', ":2: tokens.host: no text"),
        ("profiles = 1\n", ":1: profiles: no section"),
        ("profiles = \n", "is not TOML"),
    ],
)
def test_a_wrong_file_is_named_with_its_line_and_key(path, text, expected):
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(InvalidInputError) as failure:
        read_config()
    assert expected in failure.value.message


def test_tokens_that_others_can_read_are_not_used(path):
    store_login(WORLD, "og_secret", None)
    path.chmod(0o644)

    with pytest.raises(StorageError, match="others may read") as failure:
        find_token(WORLD)
    assert "og_secret" not in str(failure.value)


def test_a_profile_that_is_not_there_names_the_nearest(path):
    store_login(WORLD, None, "work")

    with pytest.raises(NotFoundError, match=path.name) as failure:
        read_config().profile("wrok")
    assert "work" in str(failure.value.hint)
