"""The rights of tokens, without a connection."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.broker.processes import write_secret

from tidings.broker.admission import permissions
from tidings.broker.admission.permissions import AGENT, ALL, Grant, PermissionRegister, Permissions
from tidings.broker.config import ConfigError, load_config
from tidings.routing.protocol import messages as m

TOKENS: dict[str, str | Grant] = {
    "first": "ann",
    "second": "*",
    "third": Grant("bob", frozenset({"publish"})),
    "fourth": Grant("edge", frozenset({"route"})),
    "fifth": Grant("mirror", frozenset({"route", "subscribe"})),
    "sixth": Grant("spark", frozenset({"preprocess"})),
}
NOBODY: frozenset[str] = frozenset()
FILE = """
name = "r"
listen = "127.0.0.1:0"
journal = "j"
[tokens]
first = "ann"
second = "*"
third = {name = "bob", may = ["publish"]}
fourth = {name = "edge", may = ["route"]}
fifth = {name = "mirror", may = ["route", "subscribe"]}
sixth = {name = "spark", may = ["preprocess"]}
"""


@pytest.mark.parametrize("token", ["first", "second", "ninth", "", "é", "\ud800"])
def test_a_greeting_costs_one_digest_however_many_tokens_there_are(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    register = PermissionRegister({**TOKENS, **{f"token {n}": "*" for n in range(1000)}})
    made: list[bytes] = []

    def counted(data: bytes) -> hashlib._Hash:
        made.append(data)
        return hashlib.sha256(data)

    monkeypatch.setattr(permissions, "sha256", counted)
    register.admit(m.Hello("ann", token=token), NOBODY)
    assert made == [token.encode("utf-8", "surrogatepass")]


def passed(
    name: str, token: str, certified: frozenset[str] = NOBODY, routes: bool = False
) -> Permissions:
    found = PermissionRegister(TOKENS).admit(m.Hello(name, token=token, routes=routes), certified)
    assert isinstance(found, Permissions), found
    return found


def test_what_each_may() -> None:
    assert passed("ann", "first").may == AGENT
    assert passed("zoe", "second").may == AGENT
    assert passed("bob", "third").may == {"publish"}
    assert passed("edge", "fourth", routes=True).may == ALL
    assert passed("mirror", "fifth", routes=True).may == {"route", "subscribe"}
    assert passed("spark", "sixth").may == {"preprocess"}
    assert passed("zoe", "", frozenset({"zoe", "host"})).may == ALL
    assert passed("zoe", "second", frozenset({"zoe"})).publisher == "zoe"
    assert passed("zoe", "second", frozenset({"other"})).publisher == "*/zoe"


@pytest.mark.parametrize(("name", "token"), [("ann", "first"), ("zoe", "second"), ("bob", "third")])
def test_nobody_routes_who_was_not_asked_to(name: str, token: str) -> None:
    found = PermissionRegister(TOKENS).admit(m.Hello(name, token=token, routes=True), NOBODY)
    assert found == (
        f"'{name}' is a router, and its token may not route; "
        f'expected {{name = "{name}", may = ["route"]}} among the tokens here'
    )
    # nor does it speak for others by not saying what it is
    assert not passed(name, token).routes
    said = passed(name, token).refusal(m.Publish("victim", 1 << 62, 1 << 62, b"{}", b""))
    assert "found a publication by 'victim'" in said


@pytest.mark.parametrize(
    ("name", "token", "rights"),
    [
        ("ann", "first", '"publish", "subscribe"'),
        ("edge", "fourth", '"publish", "route", "subscribe"'),
    ],
)
def test_nobody_tags_who_was_not_asked_to(name: str, token: str, rights: str) -> None:
    part = m.HandOver("out", 1, 0, True, 1, 1, b"", b"", b"", b"")
    for message in (m.Describe(1), m.Follow(1), part, m.Fault("odd", "1.0", "slow")):
        assert passed(name, token).refusal(message) == (
            f"'{name}' may not preprocess here; expected a token with "
            f'{{name = "{name}", may = [{rights}, "preprocess"]}} at the rendezvous point'
        )
        assert not passed("spark", "sixth").refusal(message)
        assert not Permissions(name).refusal(message), "without tokens everybody may"
    assert passed("spark", "sixth").refusal(m.Ask(1, b"n > 1")) == "'spark' may not subscribe here"
    assert passed("spark", "sixth").refusal(m.Publish("spark", 1, 1, b"{}", b""))


def test_a_file_with_tokens(tmp_path: Path) -> None:
    assert load_config(write_secret(tmp_path / "router.toml", FILE)).tokens == TOKENS


def test_a_token_in_a_file_of_its_own(tmp_path: Path) -> None:
    text = 'name = "r"\nlisten = "127.0.0.1:0"\nupstream = "h:1"\ntoken_file = "t"\n'
    path = write_secret(tmp_path / "router.toml", text)
    with pytest.raises(ConfigError, match="t can't be read: No such file"):
        load_config(path)
    write_secret(tmp_path / "t", "a secret\n")
    with pytest.raises(ConfigError, match="expected one token, a word"):
        load_config(path)
    write_secret(tmp_path / "t", "secret\n")
    assert load_config(path).token == "secret"
    write_secret(path, text + 'token = "other"\n')
    with pytest.raises(ConfigError, match="found token and token_file, expected only one"):
        load_config(path)
    (tmp_path / "t").chmod(0o644)
    write_secret(path, text)
    with pytest.raises(ConfigError, match=r"its mode is 0644\); expected 0600: chmod 600 .*/t$"):
        load_config(path)
