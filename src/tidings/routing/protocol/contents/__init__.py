"""The part of a notification's frame that follows the labels.

    frame:  labels │ envelope: context, related nodes │ body: payload, attributes, subject, time

    bodies.py             a payload with the attributes that subscribers get
    envelopes.py          what a channel with relations says in front of a body
    relation_reasons.py   nodes that match only because they are related, with the reasons

Of this part, routers read only the context. This folder is for the rest of routing; other rooms
import these names from `routing.protocol`. Start at bodies.py.
"""
