"""Comparisons, IN, BETWEEN, CASE and `exists`: conditions on values that must be comparable."""

from __future__ import annotations

from tidings.filters.language.attributes import family
from tidings.filters.language.builders.checker import describe
from tidings.filters.language.builders.leaves import LeafBuilder
from tidings.filters.language.expression import (
    Between,
    Case,
    Compare,
    Expression,
    In,
    Literal,
    make_exists,
)
from tidings.filters.language.sql_writer import text_of
from tidings.model import LongDecimal, article, count_digits, read_value


class ComparisonBuilder(LeafBuilder):
    """Builds conditions, after converting constants to the types that they are compared with."""

    def compare(
        self, op: str, left: Expression, right: Expression, left_at: int, right_at: int
    ) -> Expression:
        self.count(right_at)
        left, right = self._make_comparable(left, right, left_at, right_at)
        return Compare(op, left, right)  # type: ignore[arg-type]

    def _make_comparable(
        self, left: Expression, right: Expression, left_at: int, right_at: int
    ) -> tuple[Expression, Expression]:
        """Return both sides; a string literal is converted to the type of the other side."""
        a, b = self.type(left), self.type(right)
        left, right = settle(left, b), settle(right, a)
        if a is None or b is None or family(a) == family(b):
            return left, right
        if b == "string" and isinstance(right, Literal):
            return left, self._read_as(right, a, left, right_at)
        if a == "string" and isinstance(left, Literal):
            return self._read_as(left, b, right, left_at), right
        self.fail(
            f"{describe(left)} is {article(a)} and can't be compared with {describe(right)}, "
            f"{article(b)}",
            right_at,
        )

    def _read_as(self, node: Literal, kind: str, other: Expression, at: int) -> Literal:
        try:
            return Literal(read_value(node.value, "double" if kind == "number" else kind))  # type: ignore[arg-type]
        except ValueError:
            self.fail(
                f"{describe(other)} is {article(kind)} and can't be compared with "
                f"{text_of(node)[:60]}; expected {article(kind)}",
                at,
            )

    def is_in(
        self, item: Expression, pairs: list[tuple[Expression, int]], start: int
    ) -> Expression:
        kind = self.type(item)
        if kind is None or all(self.type(option) in (None, kind) for option, _ in pairs):
            return In(item, tuple(settle(option, kind) for option, _ in pairs))
        options = []
        for option, at in pairs:
            item, option = self._make_comparable(item, option, start, at)
            options.append(option)
        return In(item, tuple(options))

    def between(
        self, item: Expression, low: Expression, high: Expression, at: tuple[int, int, int]
    ) -> Expression:
        item, low = self._make_comparable(item, low, at[0], at[1])
        item, high = self._make_comparable(item, high, at[0], at[2])
        return Between(item, low, high)

    def case(
        self, branches: list[tuple[Expression, Expression]], default: Expression, at: int
    ) -> Expression:
        """Build a CASE whose values can all be compared with each other."""
        self.count(at, len(branches))
        values = [value for _, value in branches] + [default]
        known = [one for one in values if self.type(one) is not None]
        for one in known[1:]:
            a, b = self.type(known[0]), self.type(one)
            if "null" not in (a, b) and family(a) != family(b):
                self.fail(
                    f"CASE gives {describe(known[0])}, {article(a or '')}, and {describe(one)}, "
                    f"{article(b or '')}; expected values of one kind",
                    at,
                )
        return Case(tuple(branches), default)

    def some_element(
        self, items: Expression, name: str, condition: Expression, at: int
    ) -> Expression:
        """Build an `exists`; its variable gets a name that the condition uses for nothing else."""
        self.count(at)
        self.need_condition(condition, at)
        return make_exists(items, name, condition)


def settle(node: Expression, other: str | None) -> Expression:
    """Choose the type of a number that has more digits than a double can represent; `other` is the
    type of the value that it is compared with. If the other value is a double, the number is
    rounded to a double, as in Spark; a decimal or an integer is compared with the exact number. If
    the type is not known, a number of up to 17 digits counts as a double, because programs print
    doubles with up to 17 digits.
    """
    if not isinstance(node, Literal) or not isinstance(node.value, LongDecimal):
        return node
    if other in ("decimal", "integer") or (other is None and count_digits(node.value) > 17):
        return node
    return Literal(float(node.value))
