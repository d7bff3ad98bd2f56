"""`--types`, written in three ways; what is refused is in test_errors.py."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Write

import tidings
from tidings.cli.common.declared_types import read_types

FILES = [
    ("t.toml", 'price = "integer"\nuser.city = "string"\n'),
    ("t.toml", '"user.city" = "string"\nprice = "integer"\n'),
    ("t.json", '{"price": "integer", "user.city": "string"}'),
    ("t.JSON", '{"price": "integer", "user": {"city": "string"}}'),
]


def canonical(types: str) -> str:
    declared = read_types(types)
    assert set(declared.names) == {"price", "user"}
    text = "price > 10 AND user.city = 'Oslo'"
    return tidings.parse(text, attributes=declared.attributes).canonical().sql()


@pytest.mark.parametrize(("name", "content"), FILES)
def test_from_a_file(write: Write, name: str, content: str) -> None:
    assert canonical(write(name, content)) == "price >= 11 AND user.city = 'Oslo'"


def test_inline() -> None:
    assert canonical("price = integer, user.city=string") == "price >= 11 AND user.city = 'Oslo'"


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(write: Write) -> None:
    assert read_types(write("a=b.json", '{"x": "string"}')).names == ("x",)


def test_other_names_are_refused_unless_told() -> None:
    with pytest.raises(tidings.FilterError):
        tidings.parse("b = 1", attributes=read_types("a=integer").attributes)
    open_ = read_types("a=integer", others=True)
    tidings.parse("b = 1", attributes=open_.attributes)


def test_nothing_declared() -> None:
    assert read_types(None).attributes is None
