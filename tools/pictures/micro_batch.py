"""A micro-batch of a pipeline, from the rows in Spark's checkpoint to the hand-over."""

from __future__ import annotations

from tools.pictures.shapes import Drawing


def micro_batch() -> Drawing:
    drawing = Drawing(
        880,
        542,
        "A micro-batch with its commit",
        "Spark records the rows of batch 42 in its checkpoint. The driver pins the version of the "
        "subscriptions in the outbox. In one job, workers decode and match the rows, and write "
        "files by time to the work folder of this attempt. The driver moves the files into place, "
        "and one synced entry in the log of commits decides that this attempt counts. Then the "
        "channel accepts the batch: it numbers the notifications of each node, and a second entry "
        "with the numbers makes the batch visible. After that it is handed to sinks, and Spark "
        "records that it is done. A batch that is killed before its commit is repeated with the "
        "same rows and the same pin. A batch that is killed after its commit gets its numbers, "
        "the same as before, and is handed to sinks again.",
    )
    _draw_lanes(drawing)
    _draw_steps(drawing)
    _draw_kills(drawing)
    return drawing


ROWS = {"Spark's checkpoint": 40.0, "driver": 144.0, "workers": 248.0, "outbox": 352.0}
LOWEST = 440.0
COMMIT = 608.0  # the x coordinate of the moment of the commit


def _draw_lanes(d: Drawing) -> None:
    for name, y in ROWS.items():
        d.line((24, y - 12), (856, y - 12), dashed=True)
        first, *rest = name.split()
        d.text(24, y + (26 if rest else 36), first, "head", anchor="start")
        for words in rest:
            d.text(24, y + 45, words, "head", anchor="start")


def _draw_steps(d: Drawing) -> None:
    noted, driver, workers, outbox = ROWS.values()
    height = 72
    d.disk(132, noted, 96, height, "1 rows", "offsets/42")
    d.box(196, driver, 104, height, "2 pin", "version of the", "subscriptions")
    d.box(326, workers, 136, height, "3 one job", "decode, match,", "file by time", tone="match")
    d.box(478, driver, 116, height, "4 commit", "sync files,", "append", tone="told")
    d.box(622, driver, 92, height, "5 accept", "numbers of", "each node")
    d.box(740, driver, 116, height, "6 hand over", "to each sink", tone="input")
    d.disk(750, noted, 96, height, "7 done", "commits/42")

    d.disk(196, outbox, 104, height, "pins/", "00000042", rest="code")
    d.disk(326, outbox, 136, height, "work/", "Parquet")
    d.disk(478, outbox, 116, height, "data/, dead/", "commits")
    d.disk(622, outbox, 92, height, "commits", "numbers")

    d.arrow((180, noted + 74), (180, driver + 36), (194, driver + 36))
    d.arrow((248, driver + 74), (248, outbox - 2), tone="disk")
    d.arrow((302, driver + 36), (394, driver + 36), (394, workers - 2))
    d.arrow((394, workers + 74), (394, outbox - 2), tone="disk")
    d.arrow((464, workers + 36), (496, workers + 36), (496, driver + 74))
    d.arrow((532, driver + 74), (532, outbox - 2), tone="disk")
    d.arrow((596, driver + 36), (620, driver + 36))
    d.arrow((668, driver + 74), (668, outbox - 2), tone="disk")
    d.arrow((716, driver + 36), (738, driver + 36))
    d.arrow((798, driver - 2), (798, noted + 74))


def _draw_kills(d: Drawing) -> None:
    d.line((COMMIT, 28), (COMMIT, LOWEST + 8), tone="told")
    d.text(COMMIT - 8, 46, "from here on this attempt counts", "small", anchor="end", tone="told")
    y = LOWEST + 22
    d.line((132, y - 6), (132, y), (COMMIT - 6, y), (COMMIT - 6, y - 6), tone="bad")
    d.line((COMMIT + 6, y - 6), (COMMIT + 6, y), (856, y), (856, y - 6), tone="bad")
    said = "Killed here: it is repeated with the same rows and the same pin,"
    d.text(360, y + 18, said, tone="bad")
    d.text(360, y + 38, "in a new attempt. Nobody saw any output of this one.", "small")
    d.text(722, y + 18, "Killed here: the numbers stay,", tone="bad")
    d.text(722, y + 38, "and sinks get it again,", "small")
    d.text(722, y + 55, "and recognise it", "small")
