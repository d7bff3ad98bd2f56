"""Related nodes in a channel of an application's class: each text has its own, against folders in
which earlier releases gave one node to all texts that mean the same."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.channel.related_world import SETTINGS as WORLD
from tests.preprocessing.installed import install

from tidings.channel.related import RelatedArrayInterests
from tidings.preprocessing import KindDefinition, declare, make_kind
from tidings.relations import Reading, RelationSettings
from tidings.routing.protocol import Limits, pack_interest, relate_dialect

PORTFOLIOS = KindDefinition("application", entry_point="portfolios", version="1")
SETTINGS = RelationSettings(WORLD.semantic, Reading(place="security"))
EXACT, RELATED = "application", relate_dialect("application", 0.7)
ONE, OTHER = "SAP ALV", "ALV SAP"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(install(tmp_path / "site")))
    monkeypatch.delitem(sys.modules, "kinds_for_tests", raising=False)


def stored(text: str, dialect: str = EXACT) -> bytes:
    return pack_interest(text.encode(), dialect)


def load(
    nodes: Sequence[tuple[int, bytes]], named: Sequence[tuple[bytes, int]] = ()
) -> RelatedArrayInterests:
    kind = make_kind(declare(None, PORTFOLIOS), PORTFOLIOS)
    last = max(number for number, _ in nodes)
    return RelatedArrayInterests(SETTINGS, nodes, last, Limits(), None, None, kind, named)


def find(interests: RelatedArrayInterests, text: str, dialect: str) -> int | None:
    return interests.look_up(stored(text, dialect))[1]


@pytest.mark.parametrize("dialect", [RELATED, relate_dialect("sql", 0.7)])
def test_a_related_node_stays_at_the_node_of_another_text(dialect: str) -> None:
    other = OTHER if dialect == RELATED else "security IN ('ALV', 'SAP')"
    nodes = [(4, stored(ONE)), (5, stored(other, dialect))]
    interests = load(nodes)
    assert not interests.refused
    assert interests.relations.bases == {5: 4}
    assert find(interests, other, dialect) == 5
    exact = interests.place(stored(other, dialect.partition("+")[0])).node
    assert exact != 4
    assert interests.place(stored(other, dialect)).node == 5
    nodes.append((exact, stored(other, dialect.partition("+")[0])))
    again = load(nodes)
    assert not again.refused
    assert again.relations.bases == {5: exact}  # which lies above node 4, so nothing is missed
    assert find(again, other, dialect) == 5
    first = again.place(stored(ONE, RELATED)).node  # another text: another node
    assert again.relations.bases[first] == 4
    assert find(again, ONE, RELATED) == first


def test_a_name_stays_at_the_related_node_of_another_text() -> None:
    nodes = [(4, stored(ONE)), (5, stored(ONE, RELATED))]
    label = f"{RELATED}: {OTHER}".encode()
    interests = load(nodes, [(label, 5)])
    assert find(interests, OTHER, RELATED) == find(interests, ONE, RELATED) == 5
    assert find(load(nodes), OTHER, RELATED) is None
    other_weight = relate_dialect("application", 0.5)
    assert find(interests, OTHER, other_weight) is None


def test_a_related_node_above_a_shared_node_comes_back() -> None:
    """Also after the name that shares the exact node was dropped, and in a revision."""
    nodes = [(3, stored("SAP ALV SAP")), (4, stored(ONE))]
    named = [(f"application: {OTHER}".encode(), 4)]
    interests = load(nodes, named)
    assert find(interests, OTHER, EXACT) == 4
    related = interests.place(stored(OTHER, RELATED)).node
    assert interests.relations.bases == {related: 4}
    nodes.append((related, stored(OTHER, RELATED)))
    assert load(nodes, named).relations.bases == {related: 4}
    assert not load(nodes).refused


def test_a_name_at_a_node_of_its_own_text_decides() -> None:
    """Two owners: the first one's name is at the node of another text, from an earlier release."""
    label = f"application: {OTHER}".encode()
    for shared, own in ((4, 7), (7, 4)):
        nodes = sorted([(shared, stored(ONE)), (own, stored(OTHER))])
        interests = load(nodes, [(label, shared)])
        assert find(interests, OTHER, EXACT) == shared  # nobody else needs its own node
        for named in ([(label, shared), (label, own)], [(label, own), (label, shared)]):
            assert find(load(nodes, named), OTHER, EXACT) == own
    nodes = [(4, stored(ONE)), (5, stored("SAP BMW")), (6, stored("ALV SAP SAP"))]
    interests = load(nodes, [(label, 6), (label, 5)])
    assert find(interests, OTHER, EXACT) == 6  # node 5 no longer means the same
    assert find(interests, ONE, EXACT) == 4


def test_a_removed_related_node_is_forgotten() -> None:
    nodes = [(4, stored(ONE)), (5, stored(OTHER, RELATED))]
    interests = load(nodes)
    interests.remove(5)
    assert find(interests, OTHER, RELATED) is None
    assert interests.place(stored(ONE, RELATED)).node > 5
