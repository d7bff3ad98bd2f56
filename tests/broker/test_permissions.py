"""The rights of tokens, without a connection."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.broker.processes import write_secret

from tidings.broker.admission import permissions
from tidings.broker.admission.permissions import (
    AGENT,
    ALL,
    ChannelRights,
    PermissionRegister,
    Permissions,
    TokenRights,
)
from tidings.broker.config import ConfigError, load_config
from tidings.broker.trees.node_file import write_pairs
from tidings.routing.protocol import messages as m

TOKENS: dict[str, str | TokenRights] = {
    "first": "ann",
    "second": "*",
    "third": TokenRights("bob", frozenset({"publish"})),
    "fourth": TokenRights("edge", frozenset({"route"})),
    "fifth": TokenRights("mirror", frozenset({"route", "subscribe"})),
    "sixth": TokenRights("spark", frozenset({"preprocess"})),
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
        f"'{name}' is a router, but its token may not route; "
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


CHANNELS = ("fx", "tea", "tea-eu", "tea-eu-1", "t", "")
RIGHTS = st.frozensets(st.sampled_from(["publish", "subscribe", "preprocess", "route"]))
BEGINNINGS = st.sampled_from([*CHANNELS, *(f"{one}*" for one in CHANNELS)])
TABLES = st.builds(ChannelRights, st.none() | RIGHTS, st.none() | st.sampled_from(["", "a = 1"]))


@given(
    st.none() | RIGHTS, st.sampled_from(["", "b = 1"]),
    st.dictionaries(BEGINNINGS, RIGHTS | TABLES, min_size=1), st.sampled_from(CHANNELS),
    st.booleans(),
)  # fmt: skip
def test_rights_in_each_channel(
    may: Any, within: str, given_: Any, channel: str, routes: bool
) -> None:
    """The longest name that fits counts, and what it leaves out is as for the token; nobody may do
    anything in other channels."""
    grant = TokenRights("ann", may, within, given_)
    register = PermissionRegister({"t": grant})
    found = register.admit(m.Hello("ann", token="t", routes=routes), NOBODY)
    fitting = sorted(
        (len(one), one)
        for one in given_
        if one == channel or (one[-1:] == "*" and channel[: len(one) - 1] == one[:-1])
    )
    exact = given_.get(channel)
    one = exact if exact is not None else given_[fitting[-1][1]] if fitting else frozenset()
    table = one if isinstance(one, ChannelRights) else ChannelRights(one)
    rights = may if table.may is None else table.may
    if rights is None:
        rights = AGENT
    rights = ALL if rights == {"route"} else rights
    if isinstance(found, str):
        assert routes
        assert "route" not in grant.rights
        return
    allowed = not found.refuse_channel(channel, "other")
    assert allowed == bool(rights and (not routes or "route" in rights))
    if not allowed:
        return
    here = found.in_channel(channel)
    assert (here.may, here.within) == (rights, within if table.within is None else table.within)
    publish = m.Publish("ann", 1, 1, b"{}", b"")
    assert (not here.refusal(publish)) == ("publish" in rights)
    assert (not here.refusal(m.Ask(1, b"x > 1"))) == ("subscribe" in rights)
    assert (not here.refusal(m.Follow(1))) == ("preprocess" in rights)


def test_a_limit_that_can_never_match_is_a_warning(tmp_path: Path) -> None:
    """With the reason, the name and the line, but without the token."""
    text = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
channel = "fx"
[columns]
price = "integer"
[tokens]
s3cret = {name = "a", within = "price > 10 AND price < 5"}
s4cret = {name = "b", within = "price > 10 AND price < 12", channels = {fx = ["subscribe"]}}
s5cret = {name = "c", channels = {fx = {within = "price > 10 AND price < 11"}, tea = {may = ["publish"], within = "price > 10 AND price < 11"}}}
s6cret = {name = "d", within = "price = 'a' AND price = 'b'", channels = ["tea"]}
"""  # noqa: E501
    path = write_secret(tmp_path / "r.toml", text)
    assert load_config(path).warnings == tuple(
        f"{path}, line {line}: tokens: {where}: the filter can never match: {reason}; "
        f"'{name}' may subscribe to nothing"
        for line, where, reason, name in (
            (9, "within", "no value of price is both > 10 and < 5", "a"),
            (11, "channels.fx.within", "no value of price, an integer, is both > 10 and < 11", "c"),
            (12, "within", "no value of price is both = 'a' and = 'b'", "d"),
        )
    )


def test_rights_in_channels_in_a_file(tmp_path: Path) -> None:
    """They are read, written for the nodes of a tree, and read again."""
    text = """
seventh = {name = "desk", channels = {fx = ["publish", "subscribe"], tea = ["subscribe"]}}
eighth = {name = "eu", within = "x = 1", channels = {"te*" = {may = ["subscribe"], within = "y"}}}
"""
    path = write_secret(tmp_path / "r.toml", FILE + text)
    tokens = load_config(path).tokens
    assert tokens is not None
    eu = tokens["eighth"]
    assert isinstance(eu, TokenRights)
    assert eu.in_channel("tea") == ChannelRights(frozenset({"subscribe"}), "y")
    again = "\n".join(["[tokens]", *write_pairs(tokens)])
    write_secret(path, FILE.partition("[tokens]")[0] + again)
    assert load_config(path).tokens == tokens

    for bad, reason in (
        ('n = {name = "a", channels = {}}', "tokens: channels: found an empty table, expected at"),
        ('n = {name = "a", channels = {fx = ["fly"]}}', "fly"),
        ('n = {name = "a", channels = {fx = {within = "b >"}}}', "tokens: channels.fx.within: "),
    ):
        write_secret(path, f"{FILE}{bad}\n")
        with pytest.raises(ConfigError) as refused:
            load_config(path)
        assert reason in str(refused.value)
        assert "\n" not in str(refused.value)
