"""What a state machine sent, by receiver."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.protocol import messages as m


def to(sent: Iterable[tuple[object, m.Message]], name: str) -> list[m.Message]:
    return [message for who, message in sent if who == name]
