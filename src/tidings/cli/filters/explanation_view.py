"""Shows an explanation: one table per alternative, the closest first."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tidings import BoxReport, Explanation, TestReport
from tidings.cli.common.screen import count_of, plain_text, show, show_rest, table

FEW = 3


def show_explanation(explanation: Explanation, most: int | None = FEW) -> None:
    """Print the verdict, the reason and the tests of at most `most` alternatives."""
    show(verdict(explanation), "")
    shown = explanation.boxes[:most]
    for number, box in enumerate(shown, 1):
        if len(explanation.boxes) > 1:
            show(
                plain_text(
                    f"alternative {number} of {len(explanation.boxes)}: {_state(box)}", "bold"
                )
            )
        show(_tests(box), "")
    show_rest(len(explanation.boxes) - len(shown), "more alternative")


def verdict(explanation: Explanation) -> Text:
    """One line: `matches`, or `does not match` with the shortest reason."""
    if explanation.matched:
        return Text("matches", "bold green")
    reason = explanation.reason
    failed = explanation.boxes[0].failed if explanation.boxes else ()
    if failed:
        reason = "; ".join(
            f"expected {test.expected}, but {_term(test) or 'it'} is {test.actual}"
            for test in failed
        )
    return Text.assemble(("does not match", "bold red"), ": ", plain_text(reason))


def _term(test: TestReport) -> str:
    """The tested term; empty for a residual, which is its own term."""
    return test.term if test.term != test.expected else ""


def _state(box: BoxReport) -> str:
    failed = len(box.failed)
    return (
        f"{failed} of {count_of(len(box.tests), 'test')} failed" if failed else "all tests passed"
    )


def _tests(box: BoxReport) -> Table:
    rows = [
        (Text("pass", "green") if test.passed else Text("FAIL", "bold red"),
         test.expected, _term(test), test.actual)
        for test in sorted(box.tests, key=lambda test: test.passed)
    ]  # fmt: skip
    return table(["", "expected", "term", "actual"], rows)
