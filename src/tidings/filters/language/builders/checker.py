"""What all builders share: limits on a filter's size, refusals, and the types of expressions."""

from __future__ import annotations

from typing import Any, NoReturn

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.dialect import Context
from tidings.filters.language.expression import CONDITIONS, Call, Expression, Literal
from tidings.filters.language.named_parts import NAMED
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.filters.language.static_types import static_type_of
from tidings.model import DataType, FilterError, LimitError, article


class ScopedTypes:
    """The types of the attributes, and of the variables that stand for elements of lists."""

    def __init__(self, attributes: Attributes | None) -> None:
        self.attributes = attributes
        self.variables: dict[str, DataType | None] = {}

    def type(self, path: tuple[str, ...]) -> str | None:
        if path[0] not in self.variables:
            return None if self.attributes is None else self.attributes.type(path)
        found = self.data_type(path)
        return None if found is None else found.kind

    def data_type(self, path: tuple[str, ...]) -> DataType | None:
        if path[0] not in self.variables:
            return None if self.attributes is None else self.attributes.data_type(path)
        found = self.variables[path[0]]
        for step in path[1:]:
            found = None if found is None else found.step(step)
        return found


class Checker:
    """Counts the parts of one text, and refuses constructs that the context of the text does not
    allow."""

    def __init__(self, text: str, context: Context) -> None:
        self.text = text
        self.attributes = context.attributes
        self.functions = context.functions
        self.context = context
        self.types = ScopedTypes(context.attributes)
        self.shown: dict[str, str] = {}  # for each variable, the name that messages use
        self._parts = 0

    def count(self, at: int, parts: int = 1) -> None:
        """Count parts of the filter; raise LimitError if there are too many."""
        self._parts += parts
        if self._parts > self.context.most_parts:
            self.exceed(
                f"the filter has more than {self.context.most_parts:,} parts (attributes, "
                "comparisons and calls); use several filters",
                at,
            )

    def fail(self, reason: str, position: int) -> NoReturn:
        for name, shown in self.shown.items():
            reason = reason.replace(name_text((name,)), shown)
        raise FilterError(reason, self.text, position)

    def exceed(self, reason: str, position: int) -> NoReturn:
        """Refuse a valid filter that exceeds a limit."""
        raise LimitError(reason, self.text, position)

    def type(self, node: Expression) -> str | None:
        """The type of an expression; None if it depends on the notification."""
        return static_type_of(node, self.types)

    def need_condition(self, node: Expression, at: int) -> None:
        if isinstance(node, Literal) and node.value is None:
            return
        kind = self.type(node)
        if kind not in (None, "boolean"):
            self.fail(
                f"found {describe(node)}, {article(kind)}, expected a condition such as x > 5", at
            )

    def need_value(self, node: Expression, at: int, where: str) -> None:
        if isinstance(node, CONDITIONS) or (isinstance(node, Call) and node.name == NAMED):
            self.fail(f"found a condition, expected a value {where}", at)

    def need_constant(self, name: str, node: Expression, at: int) -> Any:
        if not isinstance(node, Literal) or isinstance(node.value, tuple):
            self.fail(f"{name} takes a constant here, found {describe(node)}", at)
        return node.value

    def need_string(self, name: str, node: Expression, at: int) -> str:
        value = self.need_constant(name, node, at)
        if not isinstance(value, str):
            self.fail(f"{name} takes a string here, found {describe(node)}", at)
        return value


def describe(node: Expression) -> str:
    text = text_of(node)
    return text if len(text) <= 60 else text[:57] + "..."
