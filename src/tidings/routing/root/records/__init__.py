"""Numbered notifications, as the journal stores them: one by one, or many as columns.

    Publish       ──number──> Record ──┐
    Run, HandOver ──number──> Block  ──┴──> journal ──(on the disk)──> counted, forwarded

    record.py   one notification
    block.py    many notifications; for a part, also how far its source has handed over

This folder is for the rest of `root`, and for broker and store. Start at record.py.
"""

from tidings.routing.root.records.block import (
    Block,
    MarkColumns,
    MatchColumns,
    PayloadColumns,
    Progress,
)
from tidings.routing.root.records.record import Record

__all__ = ["Block", "MarkColumns", "MatchColumns", "PayloadColumns", "Progress", "Record"]
