"""The declaration in a channel's folder: by version, journaled, and the same for all writers."""

from __future__ import annotations

import random
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.repeats import rounds
from tests.store.test_owner import kill, start_owner, wait_for

from tidings import Attributes, FilterError, Ontology, parse
from tidings.store import ChangeLog, Declared
from tidings.store.declared import (
    DeclarationError,
    StoredDeclaration,
    find_difference,
    join_attributes,
)
from tidings.store.folder import CURRENT, read_format
from tidings.store.owner import change_requests, owner_socket as s

WHOLE = Attributes({"x": "integer"})
MORE = Attributes({"x": "integer", "y": "double"})


def nodes(log: ChangeLog) -> dict[object, int]:
    return {id_: node for id_, (_, node) in log.subscriptions().items()}


def test_a_declaration_is_a_version(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path, WHOLE)
    assert log.put("a", "x > 1") == 1  # the declaration before it is part of version 0
    assert log.last_declaration.declaration == StoredDeclaration({"x": "integer"}, "keep")
    other = ChangeLog(tmp_path)
    assert other.put("b", "x >= 2") == 2
    assert nodes(other) == {"a": 1, "b": 1}  # x is an integer for everybody
    with pytest.raises(FilterError, match="there is no attribute 'y'"):
        other.put("c", "y > 1")
    assert other.declare(MORE) == 3
    assert other.declare(MORE) == 3  # nothing changes
    assert log.put("c", "y > 1") == 4  # whoever was there before has it, too
    assert nodes(log) == {"a": 1, "b": 1, "c": 4}
    assert [type(one) for one in log.entries(2)] == [Declared, type(log.changes(3)[0])]
    assert [one.version for one in log.changes(0)] == [1, 2, 4]
    for version, types in ((0, ["x"]), (2, ["x"]), (3, ["x", "y"]), (4, ["x", "y"])):
        assert [*(log.state(version).declared.types or {})] == types
    log.forget_before(log.version)
    for found in (ChangeLog(tmp_path), log):
        assert found.last_declaration.version == 3
        assert found.attributes is not None
        assert found.attributes.to_declared() == MORE.to_declared()
    form = read_format(tmp_path)
    assert form is not None
    assert form.format == CURRENT
    ChangeLog(tmp_path).repair()
    assert ChangeLog(tmp_path).last_declaration.declaration.types == {"x": "integer", "y": "double"}


def test_a_type_that_filters_use(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path, MORE)
    log.put_many({f"s{n}": f"x > {n}" for n in range(9)})
    log.put("pattern", '{"y": [{"numeric": [">", 5]}]}', "eventbridge")
    before = log.version
    with pytest.raises(DeclarationError) as caught:
        log.declare(Attributes({"x": "double", "y": "double"}))
    assert str(caught.value) == (
        "'x' is integer and would become double; 9 filters do not fit the declaration: "
        "the subscription 's0': x > 0; the subscription 's1': x > 1; the subscription 's2': x > 2 "
        "and 6 more; drop them first, or use another name for the attribute"
    )
    with pytest.raises(DeclarationError, match=r"^'y' is double and would not be .*'pattern': {"):
        log.declare(WHOLE)
    assert (log.version, log.last_declaration.declaration.types) == (
        before,
        {"x": "integer", "y": "double"},
    )
    log.drop("pattern")
    assert log.declare(WHOLE) == before + 2
    # what is written in another way, or only looks like the name, does not count
    log.put("text", "subject = 'y'")
    log.declare(join_attributes(MORE, Attributes({"`a.b`": "string"})))
    log.put("odd", "`a.b` = 'x'")
    with pytest.raises(DeclarationError, match=r"^'`a.b`' is string and would become date"):
        log.declare(join_attributes(Attributes({"`a.b`": "date"}), MORE))


def test_structs_get_more_fields(tmp_path: Path) -> None:
    """Filters that use a struct as a whole, or elements of a list, fit as before."""
    types = {"user": "struct<city: string>", "lines": "list<struct<qty: integer>>"}
    log = ChangeLog(tmp_path, Attributes(types))
    log.put_many(
        {"a": "user IS NULL", "b": "exists(lines, l -> l.qty > 1)", "c": "size(lines) = 0"}
    )
    more = {"user.age": "integer", "lines": "list<struct<qty: integer, sku: string>>"}
    log.declare(join_attributes(Attributes(more), Attributes(types)))
    log.put("d", "exists(lines, l -> l.sku = 'x') AND user.age > 7")
    for worse in ("list<struct<qty: double, sku: string>>", "list<struct<sku: string>>", "string"):
        with pytest.raises(DeclarationError, match=r"'lines' is list<struct<qty: integer, sku: s"):
            log.declare(Attributes({"user": "struct<city: string, age: integer>", "lines": worse}))


def test_an_open_channel_gets_types(tmp_path: Path) -> None:
    """An attribute that filters use already gets a type that fits them; nodes stay."""
    log = ChangeLog(tmp_path)
    log.put_many({"a": "x > 1", "b": "x >= 2", "c": "y = 'no'"})
    with pytest.raises(DeclarationError, match=r"1 filter does not fit the .*'c': y = 'no'; drop"):
        log.declare(Attributes({"y": "integer"}, extra="open"))
    with pytest.raises(DeclarationError, match="there is no attribute 'y'"):
        log.declare(WHOLE)
    assert log.declare(Attributes({"x": "integer"}, extra="open")) == 4
    assert nodes(log) == {"a": 1, "b": 2, "c": 3}
    log.put("d", "x > 1")
    assert nodes(log)["d"] == 2  # of the nodes that are equal now, the one with this identity


@pytest.mark.parametrize("kind", ["driver", "root"])
def test_an_owner_declares_for_others(tmp_path: Path, kind: str) -> None:
    """Also after it was killed; and a declaration that was made meanwhile is not overwritten."""
    ChangeLog(tmp_path, WHOLE).put("a", "x > 1")
    owner = start_owner(tmp_path, kind)
    wait_for(owner)
    try:
        log = ChangeLog(tmp_path)
        before = log.last_declaration.declaration.text
        with pytest.raises(DeclarationError, match="'x' is integer and would become double"):
            log.declare(Attributes({"x": "double"}))
        version = log.declare(MORE)
        assert log.last_declaration.version == version == log.version
        assert log.put("b", "y > 1") == version + 1
        assert nodes(log) == {"a": 1, "b": version + 1}
        with pytest.raises(DeclarationError, match="declared other attributes"):
            log.declare(WHOLE, before)
    finally:
        kill(owner)
    assert log.declare(join_attributes(MORE, Attributes({"z": "string"}))) == log.version
    assert {**(log.last_declaration.declaration.types or {})}.keys() >= {"x", "y", "z"}


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_root_dies_before_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_marked: bool
) -> None:
    """It has written the declaration, in its own words, so the command is done."""
    ChangeLog(tmp_path, WHOLE).put("a", "x > 1")
    owner = start_owner(tmp_path, "root")
    wait_for(owner)
    log, answer = ChangeLog(tmp_path), change_requests._await_answer
    mark, made = (tmp_path / "end").read_bytes(), list[int]()

    def die(link: socket.socket, greeting: s.Greeting) -> int:
        monkeypatch.setattr(change_requests, "_await_answer", answer)
        made.append(answer(link, greeting))
        kill(owner)
        if not is_marked:
            (tmp_path / "end").write_bytes(mark)
        raise EOFError

    monkeypatch.setattr(change_requests, "_await_answer", die)
    try:
        assert [log.declare(MORE)] == made
    finally:
        if owner.poll() is None:
            kill(owner)
    assert log.last_declaration.declaration.types == {
        "subject": "string",
        "x": "integer",
        "y": "double",
    }


def test_declarations_that_say_the_same() -> None:
    plain = StoredDeclaration.of(MORE)
    types = {"y": "double", "subject": "string", "x": "integer"}
    assert plain.says_the_same(StoredDeclaration(types, "keep"))
    assert StoredDeclaration().says_the_same(StoredDeclaration())
    for other in (
        StoredDeclaration(types, "open"),
        StoredDeclaration({**types, "y": "integer"}, "keep"),
        StoredDeclaration({**types, "z": "integer"}, "keep"),
        StoredDeclaration(),
    ):
        assert not plain.says_the_same(other)
        assert not other.says_the_same(plain)


def test_declarations_and_changes_at_once(tmp_path: Path, seed: int) -> None:
    """Whatever comes first: each filter has the identity that it has by the declaration at its
    version, so equal filters share a node."""
    rng = random.Random(f"{seed} at once")
    ChangeLog(tmp_path, Attributes({"a0": "integer"})).put("s", "a0 > 1")
    signs = (">", ">=")
    texts = [f"a0 {rng.choice(signs)} {rng.randrange(3)}" for _ in rounds(12, 60)]

    def declare(at: int) -> None:
        while True:
            log = ChangeLog(tmp_path)
            told = log.last_declaration.declaration
            assert told.attributes is not None
            try:
                more = Attributes({f"a{at}": "integer"})
                log.declare(join_attributes(told.attributes, more), told.text)
                return
            except DeclarationError:
                assert log.last_declaration.declaration != told  # somebody else was faster

    shared = ChangeLog(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        work: list[Future[Any]] = [pool.submit(declare, at) for at in range(1, 5)]
        work += [pool.submit(shared.put, f"s{n}", text) for n, text in enumerate(texts)]
        for one in work:
            one.result()
    log = ChangeLog(tmp_path)
    assert log.attributes is not None
    assert {*(log.last_declaration.declaration.types or {})} == {f"a{at}" for at in range(5)}
    by_key: dict[bytes, set[int]] = {}
    for text, node in log.subscriptions().values():
        by_key.setdefault(parse(text, attributes=log.attributes).key, set()).add(node)
    assert all(len(found) == 1 for found in by_key.values())


def test_given_attributes_must_agree(tmp_path: Path) -> None:
    ChangeLog(tmp_path, MORE).put("a", "x > 1")
    ChangeLog(tmp_path, WHOLE).put("b", "y > 1")  # the channel may declare more
    for given, sentence in (
        (Attributes({"x": "double"}), "^'x' is double here, but the channel '.*' declares integer"),
        (Attributes({"z": "double"}), "^'z' is given, but the channel '.*' does not declare it"),
        (Attributes({"x": "integer"}, extra="refuse"), "^extra is 'refuse' here, but the channel"),
    ):
        with pytest.raises(DeclarationError, match=sentence):
            ChangeLog(tmp_path, given).put("c", "x > 1")
        with pytest.raises(DeclarationError, match=sentence):
            _ = ChangeLog(tmp_path, given).attributes
    with pytest.raises(DeclarationError, match="an ontology belongs to a channel of topics"):
        ChangeLog(tmp_path).declare(Attributes({"t": Ontology({"a": "b"})}))
    deep = Attributes({"u": "struct<a: integer, b: struct<c: string>>"})
    assert find_difference(Attributes({"u.b.c": "string"}), deep, "it") is None
    assert find_difference(Attributes({"u.b.d": "string"}), deep, "it") == (
        "'u.b.d' is given, but it does not declare it"
    )
    assert find_difference(Attributes({"u.b.c": "date"}), deep, "it") == (
        "'u.b.c' is date here, but it declares string"
    )
    joined = join_attributes(Attributes({"u.b.d": "date"}), deep).tree["u"]
    assert str(joined) == "struct<b: struct<d: date, c: string>, a: integer>"
