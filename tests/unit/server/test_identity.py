"""Identities: whatever a header has, it proves an actor, or is refused in one way."""

import asyncio
import json
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.clock import SystemClock
from omnigraph.errors import ErrorCode, InvalidInputError, NotAllowedError
from omnigraph.server import keys as signing_keys
from omnigraph.server.identity import Identities
from omnigraph.server.settings import read_settings

NOW = SystemClock().now()
ISSUER, AUDIENCE = "https://id.example.com", "omnigraph"
FIRST, SECOND = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


def public(key: Any, key_id: str) -> dict[str, Any]:
    shown = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
    return {**shown, "kid": key_id, "alg": "ES256", "use": "sig"}


def claims(**changes: Any) -> dict[str, Any]:
    usual = {
        "sub": "ada",
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": NOW + timedelta(hours=2),
    }
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def signed(key: Any = FIRST, key_id: str | None = "first", **changes: Any) -> str:
    headers = {} if key_id is None else {"kid": key_id}
    return jwt.encode(claims(**changes), key, algorithm="ES256", headers=headers)


def identities(place: str, tmp_path: Any, **section: Any) -> Identities:
    given_ = {"jwks": place, "issuer": ISSUER, "audience": AUDIENCE, **section}
    return Identities(read_settings(None, state=tmp_path, jwt=given_), SystemClock())


@pytest.fixture
def jwks(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [public(FIRST, "first")]}))
    return path


@pytest.fixture
def provider(jwks, tmp_path):
    return identities(str(jwks), tmp_path)


def actor(found: Identities, token: str) -> str | None:
    return asyncio.run(found.actor_of(f"Bearer {token}"))


def refuses(found: Identities, token: str) -> None:
    with pytest.raises(NotAllowedError) as refused:
        actor(found, token)
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    # Which part is wrong would help to forge the next one.
    assert refused.value.message == "the token is unknown, expired or revoked"


def test_a_signed_token_names_its_actor(provider):
    assert actor(provider, signed()) == "ada"
    assert actor(provider, signed(key_id=None)) == "ada"
    assert actor(provider, signed(aud=["other", AUDIENCE])) == "ada"


def with_public_key_as_secret() -> str:
    pem = FIRST.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # PyJWT itself refuses to sign so; an attacker does not ask it.
    head, body = (
        jwt.utils.base64url_encode(json.dumps(part, default=str).encode())
        for part in ({"alg": "HS256", "kid": "first"}, {**claims(), "exp": NOW.timestamp() + 7_200})
    )
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        head + b"." + body, pem
    )
    return b".".join([head, body, jwt.utils.base64url_encode(signature)]).decode()


def without_signature() -> str:
    return jwt.encode(claims(), "", algorithm="none", headers={"kid": "first"})


@pytest.mark.parametrize(
    "token",
    [
        signed(iss="https://evil.example.com"),
        signed(iss=None),
        signed(aud="another"),
        signed(aud=None),
        signed(exp=NOW - timedelta(seconds=60)),
        signed(exp=None),
        signed(nbf=NOW + timedelta(hours=2)),
        signed(SECOND),
        signed(SECOND, "second"),
        signed(SECOND, None),
        signed(sub=None),
        signed(sub=""),
        signed(sub="omnigraph:recovery"),
        signed(sub="a\nb"),
        signed()[:-4] + "AAAA",
        signed().rpartition(".")[0] + ".",
        with_public_key_as_secret(),
        without_signature(),
        "a.b.c",
        "..",
    ],
)
def test_everything_else_proves_nothing(provider, token):
    refuses(provider, token)


def test_another_claim_may_name_the_actor(jwks, tmp_path):
    by_mail = identities(str(jwks), tmp_path, actor_claim="email")
    assert actor(by_mail, signed(email="ada@example.com")) == "ada@example.com"
    refuses(by_mail, signed())
    refuses(by_mail, signed(email=7))
    refuses(by_mail, signed(email=["ada"]))


def test_keys_of_a_file_are_exchanged_without_a_restart(jwks, provider, monkeypatch):
    monkeypatch.setattr(signing_keys, "_PAUSE_SECONDS", 0)
    refuses(provider, signed(SECOND, "second"))
    jwks.write_text(json.dumps({"keys": [public(FIRST, "first"), public(SECOND, "second")]}))
    assert actor(provider, signed(SECOND, "second")) == "ada"
    # A token that names no key could be of either.
    refuses(provider, signed(key_id=None))
    jwks.write_text("nonsense")
    assert actor(provider, signed()) == "ada"
    monkeypatch.setattr(signing_keys, "_AGE_SECONDS_MAX", 0)
    jwks.write_text(json.dumps({"keys": [public(SECOND, "second")]}))
    refuses(provider, signed())


def test_keys_of_an_address_are_read_once_however_many_are_made_up(tmp_path):
    asked: list[str] = []

    class Provider(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"keys": [public(FIRST, "first")]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            found = identities(f"http://127.0.0.1:{server.server_port}/keys", tmp_path)
            assert asked == []
            for number in range(5):
                refuses(found, signed(SECOND, f"made up {number}"))
            assert actor(found, signed()) == "ada"
        finally:
            server.shutdown()
            thread.join()
    assert asked == ["/keys"]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"jwks": "nothing.json"}, "is not a key set"),
        ({"jwks": "http://id.example.com/keys"}, "use https"),
        ({"jwks": "nothing.json", "algorithms": ["HS256"]}, "needs no private key"),
        ({"jwks": "nothing.json", "algorithms": ["none"]}, "needs no private key"),
    ],
)
def test_settings_that_would_trust_anybody_are_refused(tmp_path, section, expected):
    with pytest.raises(InvalidInputError, match=expected):
        identities(tmp_path=tmp_path, place=section.pop("jwks"), **section)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "keys.json"
    path.write_text(json.dumps({"keys": [public(FIRST, "first")]}))
    return identities(str(path), folder)


PARTS = st.binary(max_size=60).map(lambda part: jwt.utils.base64url_encode(part).decode())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
HEADERS = st.fixed_dictionaries(
    {"alg": st.sampled_from(["ES256", "RS256", "none", "HS256", ""]) | JSON}, optional={"kid": JSON}
)
FORGED = st.tuples(
    HEADERS.map(lambda part: jwt.utils.base64url_encode(json.dumps(part).encode()).decode()),
    JSON.map(lambda part: jwt.utils.base64url_encode(json.dumps(part).encode()).decode()),
    PARTS,
).map(".".join)


@given(st.text(max_size=80) | FORGED | st.lists(PARTS, max_size=4).map(".".join))
@example("og_" + "0" * 12 + "_")
@example("\x00")
@example("eyJ" * 4_000)
@example(f"{jwt.utils.base64url_encode(b'[' * 5_000).decode()}..")
def test_a_made_up_token_is_refused_and_breaks_nothing(fuzzed, token):
    for header in (f"Bearer {token}", token, f"bearer  {token}"):
        with pytest.raises(NotAllowedError) as refused:
            asyncio.run(fuzzed.actor_of(header))
        assert refused.value.code is ErrorCode.UNAUTHENTICATED
