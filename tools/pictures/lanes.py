"""The two lanes: one picture of each, and one of both with the parts that they share."""

from __future__ import annotations

from tools.pictures.shapes import Drawing

WIDTH = 880.0
PIPELINE, NETWORK, SHARED = 252.0, 234.0, 148.0  # heights
PIPELINE_SAID = (
    "A source delivers rows, which are decoded; rows that can't be read become dead letters. The "
    "others are matched against a snapshot of the change log. Each batch pins one version of the "
    "log. Rows that match are numbered at each node and written to the outbox, with one commit "
    "for each batch, and then handed to sinks."
)
NETWORK_SAID = (
    "A publisher's notification goes up through routers to the root. There it is tagged with the "
    "lowest nodes that match, numbered, and written to the journal. Then it is acknowledged. "
    "Routers forward it down to the subscribers by its header. A filter goes up the same way, and "
    "the number of its node comes back."
)


def pipeline_lane() -> Drawing:
    drawing = Drawing(WIDTH, PIPELINE, "The pipeline lane, on Spark", PIPELINE_SAID)
    _draw_pipeline(drawing, 0)
    return drawing


def network_lane() -> Drawing:
    drawing = Drawing(WIDTH, NETWORK, "The network lane: root, routers and agents", NETWORK_SAID)
    _draw_network(drawing, 0)
    return drawing


def two_lanes() -> Drawing:
    said = (
        f"Above, the pipeline lane. {PIPELINE_SAID} Below, the network lane. {NETWORK_SAID} Both "
        f"use the same filters, content graph and matcher. They meet at the root: a pipeline can "
        f"take its subscriptions, the nodes of a channel, from there instead of from a change log, "
        f"and hands committed batches over to it."
    )
    drawing = Drawing(WIDTH, PIPELINE + SHARED + NETWORK, "The two lanes of tidings", said)
    _draw_pipeline(drawing, 0)
    _draw_shared(drawing, PIPELINE)
    _draw_network(drawing, PIPELINE + SHARED)
    _draw_meeting(drawing, PIPELINE + SHARED)
    return drawing


def _draw_meeting(d: Drawing, top: float) -> None:
    """From the root, whose box begins 44 below `top`, to the snapshot, and from the sinks to it."""
    root = top + 42
    d.arrow((504, root), (504, 246), (410, 246), (410, 236), tone="match")
    d.text(512, 248, "the nodes of a channel, by version", "small", anchor="start", tone="match")
    d.arrow((858, 85), (868, 85), (868, top + 22), (580, top + 22), (580, root), tone="told")
    d.text(724, top + 16, "committed batches, in parts", "small", tone="told")


def _draw_pipeline(d: Drawing, top: float) -> None:
    d.text(24, top + 26, "Pipeline lane", "head", anchor="start")
    d.text(140, top + 26, "streams and tables, on Spark", "small", anchor="start")
    y, height = top + 48, 74
    d.box(24, y, 112, height, "source", "files, Kafka,", "feeds", tone="input")
    d.box(164, y, 112, height, "decode", "text to typed", "columns")
    d.box(304, y, 140, height, "match", "lowest nodes,", "subscriptions", tone="match")
    d.box(472, y, 116, height, "number", "1, 2, 3, ...", "in each node")
    d.disk(616, y, 116, height, "outbox", "one commit", "for each batch")
    d.box(760, y, 96, height, "sinks", "console,", "Kafka, ...", tone="told")
    d.row(y + height / 2, (24, 136), (164, 276), (304, 444), (472, 588), (616, 732), (760, 856))

    low, height = top + 168, 66
    d.disk(164, low, 112, height, "dead letters", "with reasons", tone="bad")
    d.arrow((220, y + 76), (220, low - 2), tone="bad")
    d.text(214, low - 22, "bad rows", "small", anchor="end", tone="bad")
    d.disk(304, low, 140, height, "snapshot", "graph and index")
    d.arrow((374, low - 2), (374, y + 76), tone="match")
    d.text(382, low - 22, "one version for each batch", "small", anchor="start", tone="match")
    d.disk(472, low, 116, height, "change log", "with versions")
    d.box(616, low + 6, 240, height - 12, "subscribers", "put and drop subscriptions", tone="input")
    d.arrow((614, low + 36), (590, low + 36))
    d.arrow((470, low + 36), (446, low + 36))


def _draw_shared(d: Drawing, top: float) -> None:
    d.band(12, top + 4, WIDTH - 24, SHARED - 16)
    d.text(24, top + 26, "Shared", "head", anchor="start")
    d.text(90, top + 26, "in both lanes, content is analysed only once", "small", anchor="start")
    for at, (name, *steps) in enumerate(
        [
            ("filter", "text", "canonical form: boxes", "node of the content graph"),
            ("notification", "event", "matcher: rank space", "tag: lowest nodes that match"),
        ]
    ):
        y = top + 44 + 42 * at
        d.text(24, y + 16, name, anchor="start")
        d.box(136, y, 90, 32, steps[0], tone="input", first="text")
        d.box(278, y, 200, 32, steps[1], first="text")
        d.box(530, y, 326, 32, steps[2], tone="match", first="text")
        d.row(y + 16, (136, 226), (278, 478), (530, 856))


def _draw_network(d: Drawing, top: float) -> None:
    d.text(24, top + 26, "Network lane", "head", anchor="start")
    d.text(138, top + 26, "single notifications, through routers", "small", anchor="start")
    y, height = top + 62, 90
    d.box(24, y, 100, height, "publisher", "an agent", tone="input")
    d.box(148, y, 80, height, "router", "passes", "it up")
    d.box(252, y - 18, 356, height + 36)
    d.text(430, y - 3, "root, the rendezvous point of a channel", "small")
    d.box(264, y + 14, 108, 74, "tag", "lowest nodes", "that match", tone="match")
    d.box(394, y + 14, 98, 74, "number", "1, 2, 3, ...", "in each node")
    d.disk(514, y + 14, 82, 74, "journal", "synced")
    d.box(632, y, 92, height, "router", "forwards", "by header")
    d.box(748, y, 108, height, "subscriber", "an agent", tone="told")
    middle = y + 51
    d.row(middle, (24, 124), (148, 228), (264, 372), (394, 492), (514, 596), (632, 724), (748, 856))

    bottom, low = y + height + 18, y + height + 44
    d.arrow((440, bottom + 2), (440, low), (74, low), (74, y + height + 2), tone="disk")
    d.text(257, low + 14, "acknowledged once it is on the disk", "small", tone="disk")
    d.arrow((808, y + height + 2), (808, low), (540, low), (540, bottom + 2), tone="input")
    d.text(674, low + 14, "filter up, number of its node back", "small", tone="input")
