"""The life of a subscription: its messages in the network, its versions in a pipeline."""

from __future__ import annotations

from itertools import pairwise

from tools.pictures.shapes import Drawing, Tone

AGENT, ROUTER, ROOT = 190.0, 440.0, 690.0
MESSAGES = ("Ask", "Answer", "Subscribe", "Setup", "Count", "Counted", "Notification", "Beat",
            "Resubscribe", "Recover", "Recovered", "Unsubscribe", "Gone")  # fmt: skip
PHASES = ("asking", "joining", "on", "stopped")
STATES = ("absent", "pending", "active", "leaving")


def subscription() -> Drawing:
    drawing = Drawing(
        880,
        886,
        "The life of a subscription",
        "In the network: an agent asks the root, through its router, for the node of a filter. The "
        "root makes the node durable and answers with its number. The agent subscribes to the "
        "number at its router, and the router at the root. Both learn the position of the node "
        "and add it to their graphs. From then on notifications arrive. Beats and digests reveal "
        "missing notifications, which are recovered from the nearest router that has them. To end "
        "the subscription, the agent unsubscribes, then the router does; the root retires a node "
        "that nobody wants. In a pipeline: a change in the log has a version, travels with the "
        "tasks of later batches, and is compiled into a snapshot.",
    )
    _draw_network(drawing)
    _draw_pipeline(drawing)
    return drawing


def _draw_network(d: Drawing) -> None:
    d.text(24, 30, "In the network", "head", anchor="start")
    ends: list[tuple[float, str, Tone]] = [
        (AGENT, "agent", "told"), (ROUTER, "router", "plain"), (ROOT, "root", "match"),
    ]  # fmt: skip
    for x, name, tone in ends:
        d.line((x, 82), (x, 690), dashed=True)
        d.box(x - 60, 50, 120, 32, name, tone=tone)

    y = 112.0
    _send(d, y, "Ask: price > 90", AGENT, ROUTER, ROOT, tone="input")
    _note(d, ROOT, y + 2, "finds or makes", "node 2, in the", "journal, synced", tone="disk")
    _send(d, y + 48, "Answer: node 2", ROOT, ROUTER, AGENT, tone="disk")
    _phase(d, y - 12, y + 40, "asking")

    y = 216.0
    _send(d, y, "Subscribe: 2", AGENT, ROUTER)
    _step(d, y + 26, "pending", "Subscribe: 2", ROOT)
    _send(d, y + 54, "Setup: parents, children", ROOT, ROUTER)
    _step(d, y + 80, "active", "Setup", AGENT)
    _note(d, ROOT, y + 26, "only if the router", "does not have", "node 2 yet")
    _phase(d, y - 12, y + 84, "joining")

    y = 332.0
    _send(d, y, "Count: since the Answer", AGENT, ROUTER, ROOT)
    _send(d, y + 26, "Counted: published meanwhile", ROOT, ROUTER, AGENT)
    _send(d, y + 66, "Notification", ROOT, ROUTER, AGENT, tone="told")
    _send(d, y + 92, "Notification", ROOT, ROUTER, AGENT, tone="told")
    _send(d, y + 118, "Beat, each second", ROOT, ROUTER, AGENT)
    _note(d, ROOT, y + 84, "gaps in numbers", "and beats show", "what is missing")
    _send(d, y + 144, "Resubscribe, a digest", AGENT, ROUTER)
    _send(d, y + 170, "Recover: number 12", AGENT, ROUTER, tone="bad")
    _note(d, ROUTER, y + 172, "from the nearest router", "that has it, or the root")
    _send(d, y + 196, "Recovered: number 12", ROUTER, AGENT, tone="told")
    _phase(d, y - 12, y + 206, "on")

    y = 570.0
    _send(d, y, "Unsubscribe: 2", AGENT, ROUTER)
    _step(d, y + 26, "leaving", "Unsubscribe: 2", ROOT)
    _send(d, y + 52, "Gone", ROOT, ROUTER)
    _state(d, y + 78, "absent")
    _note(
        d, ROOT, y + 58, "retires a node that", "nobody has wanted", "for 40 seconds", tone="disk"
    )
    _phase(d, y - 12, y + 100, "stopped")


def _send(d: Drawing, y: float, words: str, *stops: float, tone: Tone = "plain") -> None:
    """Draw a message from stop to stop, with its text above the first arrow."""
    for at, (start, end) in enumerate(pairwise(stops)):
        ahead = 1 if end > start else -1
        d.arrow((start + 4 * ahead, y), (end - 4 * ahead, y), tone=tone)
        if at == 0:
            d.text((start + end) / 2, y - 10, words, "small", tone=tone)


def _step(d: Drawing, y: float, state: str, words: str, to: float) -> None:
    """Draw a new state of the node at the router, and the message that it then sends."""
    _send(d, y, words, ROUTER, to)
    _state(d, y, state)


def _note(d: Drawing, x: float, y: float, *lines: str, tone: Tone | None = None) -> None:
    d.lines(x + 16, y, lines, tone=tone)


def _state(d: Drawing, y: float, words: str) -> None:
    """The state of the node at the router."""
    d.box(ROUTER - 40, y - 10, 80, 20, words, first="small")


def _phase(d: Drawing, top: float, bottom: float, words: str) -> None:
    """The phase of the subscription at the agent."""
    d.line((104, top), (98, top), (98, bottom), (104, bottom), tone="told")
    d.text(88, (top + bottom) / 2, words, anchor="end", tone="told")


def _draw_pipeline(d: Drawing) -> None:
    top = 714.0
    d.line((24, top), (856, top), dashed=True)
    d.text(24, top + 26, "In a pipeline", "head", anchor="start")
    y, height = top + 48, 84
    d.box(24, y, 112, height, "put", "tidings", "subscriptions", "add", tone="input")
    d.disk(164, y, 116, height, "change log", "version 9,", "synced")
    tasks = "with the tasks", "of each batch that", "pins 9 or later"
    d.box(308, y, 152, height, *tasks, tone="match")
    d.disk(488, y, 152, height, "snapshot", "compiled after", "1,000 changes")
    dropped = "drop", "a later version: batches", "that pin it no longer", "have the filter"
    d.box(668, y, 188, height, *dropped)
    d.row(y + height / 2, (24, 136), (164, 280), (308, 460), (488, 640), (668, 856))
