"""How much each kind of relation counts, and which distances count as near."""

from __future__ import annotations

import msgspec

from tidings.model import AttributesError

PEOPLE = {"family": 0.8, "friend": 0.6, "classmate": 0.5, "colleague": 0.4}


class Weights(msgspec.Struct, frozen=True):
    """All settings of merit. A value that is exactly the same has the weight 1."""

    ancestor: float = 1.0
    descendant: float = 0.7
    people: dict[str, float] = msgspec.field(default_factory=PEOPLE.copy)
    """The weight of each kind of link; other kinds don't count."""
    near_km: float = 100.0
    """Places nearer than this have the weight 1 - distance / near_km."""
    near_days: float = 7.0
    """Times nearer than this, measured from middle to middle, are weighted in the same way."""
    height: float = 25.0
    """How many kilometres of distance one kilometre of altitude counts as."""
    links: int = 2
    """How many links up and down a tree are followed."""
    best: int = 10
    """How many nodes of a hop count for its merit."""

    def __post_init__(self) -> None:
        shares = {"ancestor": self.ancestor, "descendant": self.descendant, **self.people}
        for name, value in shares.items():
            if not 0 <= value <= 1:
                raise AttributesError(f"{name}: found the weight {value}, expected 0 to 1")
        for name in ("near_km", "near_days"):
            if not getattr(self, name) > 0:
                raise AttributesError(
                    f"{name}: found {getattr(self, name)}, expected a number above 0"
                )
        if self.links < 0 or self.best < 1 or not self.height >= 0:
            raise AttributesError(
                f"found links={self.links}, best={self.best} and height={self.height}, expected at "
                "least 0, 1 and 0"
            )
