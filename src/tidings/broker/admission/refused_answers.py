"""The answers to messages that are refused because of missing rights."""

from __future__ import annotations

from tidings.routing.protocol import messages as m


def answer_refused(message: m.Message, epoch: int, reason: str) -> m.Message | None:
    """The refusal, with its reason, for a sender that waits for an answer; None if the sender does
    not wait."""
    if isinstance(message, m.Publish):
        return m.Published(epoch, message.publisher, message.stamp, reason)
    if isinstance(message, m.Ask):
        return m.Answer(epoch, message.request, refusal=reason)
    if isinstance(message, m.Describe):
        return m.Described(epoch, message.request, refusal=reason)
    if isinstance(message, m.Follow):
        return m.Changed(epoch, message.request, refusal=reason)
    if isinstance(message, m.Suggest):
        return m.Suggested(epoch, message.request, refusal=reason)
    if isinstance(message, m.HandOver):
        return m.Taken(epoch, message.source, message.batch, message.part, reason)
    if isinstance(message, m.Present):
        return m.Presented(message.request, reason)
    if isinstance(message, m.Apply):
        return m.Offered(epoch, message.request)
    return None
