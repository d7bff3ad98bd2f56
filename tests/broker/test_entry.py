"""What a token is good for, without any connection."""

from __future__ import annotations

import hmac
from pathlib import Path

import pytest

from tidings.broker.config import load_config
from tidings.broker.entry import ALL, GUEST, Grant, Pass, admit
from tidings.routing import messages as m

TOKENS: dict[str, str | Grant] = {
    "first": "ann",
    "second": "*",
    "third": Grant("bob", frozenset({"publish"})),
}
NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize("token", ["first", "second", "third", "fourth", "", "é", "\ud800"])
def test_every_token_is_compared(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """How long it takes does not tell which it was, or how much of one was right."""
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def counted(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return compare(left, right)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    admit(m.Hello("ann", token=token), TOKENS, NOBODY)
    assert compared == [(32, 32)] * 3


def passed(name: str, token: str, certified: frozenset[str] = NOBODY) -> Pass:
    found = admit(m.Hello(name, token=token), TOKENS, certified)
    assert isinstance(found, Pass)
    return found


def test_what_each_may() -> None:
    assert passed("ann", "first").may == ALL
    assert passed("zoe", "second").may == GUEST
    assert passed("bob", "third").may == {"publish"}
    assert passed("zoe", "", frozenset({"zoe", "host"})).may == ALL
    assert passed("zoe", "second", frozenset({"zoe"})).publisher == "zoe"
    assert passed("zoe", "second", frozenset({"other"})).publisher == "*/zoe"


def test_a_file_with_tokens(tmp_path: Path) -> None:
    path = tmp_path / "router.toml"
    path.write_text(
        'name = "r"\nlisten = "127.0.0.1:0"\njournal = "j"\n[tokens]\nfirst = "ann"\n'
        'second = "*"\nthird = {name = "bob", may = ["publish"]}\n'
    )
    assert load_config(path).tokens == TOKENS
