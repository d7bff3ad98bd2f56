"""What is printed: counts, cut texts, and a progress bar only where a person sees it."""

from __future__ import annotations

import sys

import pytest
from tests.cli.terminals import Terminal

from tidings.cli.common.screen import STEP, count_of, cut, report_steps, track


@pytest.mark.parametrize("total", [None, 3 * STEP])
def test_progress_goes_to_a_terminal_on_stderr(
    monkeypatch: pytest.MonkeyPatch, total: int | None
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert list(track(range(3 * STEP), "reading", total)) == list(range(3 * STEP))
    assert "reading" in screen.getvalue()


def test_no_progress_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(range(3), "reading")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_what_is_being_done_goes_to_a_terminal_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with report_steps() as note:
        note("round 1 of [2]")
    assert "round 1 of [2]" in screen.getvalue()


def test_what_is_being_done_goes_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    with report_steps() as note:
        note("round 1")
    assert capsys.readouterr().err == ""


def test_words() -> None:
    assert count_of(1, "event") == "1 event"
    assert count_of(12_000, "match", "matches") == "12,000 matches"
    assert cut("abcdef", 4) == "abc…"
    assert cut("abc", 4) == "abc"
