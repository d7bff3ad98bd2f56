"""A channel without a network, for the parts of a pipeline that speak to its owner: what it tells,
and what it took. The tests over real processes are in test_channel_live.py and kills/."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.channel import Changes, Description, NodeChange, Part
from tidings.network import TimedOut


class ToldChannel:
    """It has a `ChannelLink`'s methods. Numbers leap, as they do when an owner is restarted, and
    `changes` has only what changed in all."""

    def __init__(self, attributes: dict[str, str] | None = None, life: int = 7) -> None:
        self.description = Description("quotes", life, attributes, "keep" if attributes else "open")
        self.version = 0
        self.renewed = 0  # whoever asks since an older version gets everything
        self.begun: dict[int, str] = {}
        self.ended: dict[int, int] = {}  # when, by node
        self.states: dict[int, dict[int, str]] = {0: {}}
        self.parts: list[Part] = []
        self.down = 0  # calls that are not answered
        self.calls = 0

    # -- what happens there ----------------------------------------------------------------------

    def add(self, text: str, leap: int = 1) -> int:
        self.version += leap
        self.begun[self.version] = text
        self._note()
        return self.version

    def end(self, node: int, leap: int = 1) -> None:
        self.version += leap
        self.ended[node] = self.version
        self._note()

    def _note(self) -> None:
        self.states[self.version] = self.living()

    def living(self) -> dict[int, str]:
        return {node: text for node, text in self.begun.items() if node not in self.ended}

    # -- what is asked ---------------------------------------------------------------------------

    def describe(self) -> Description:
        self._answer()
        return self.description

    def changes(self, since: int = 0, life: int = 0) -> Changes:
        self._answer()
        whole = life != self.description.life or since < self.renewed or since not in self.states
        then: dict[int, str] = {} if whole else self.states[since]
        now = self.living()
        found = [NodeChange(node, node, text) for node, text in now.items() if node not in then]
        found += [NodeChange(self.ended[node], node, None) for node in then if node not in now]
        found.sort(key=lambda one: one.version)
        return Changes(self.description.life, self.version, whole, tuple(found))

    def hand_over(self, parts: Iterable[Part]) -> int:
        self._answer()
        count = 0
        for part in parts:
            count += 1
            keys = [(one.source, one.batch, one.part) for one in self.parts]
            if (part.source, part.batch, part.part) not in keys:
                self.parts.append(part)
        return count

    def close(self) -> None:
        pass

    def _answer(self) -> None:
        self.calls += 1
        if self.down:
            self.down -= 1
            raise TimedOut("no answer from the owner")

    def renew(self, **values: object) -> None:
        self.description = msgspec.structs.replace(self.description, **values)
