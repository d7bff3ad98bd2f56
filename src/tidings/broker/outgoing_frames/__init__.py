"""Encodes the notifications that a rendezvous point sends, as frames.

    Record ──frames.encode_marked──┐
    Block  ──block_frames──────────┴──> runs of frames ──> forwarded

    framed_rendezvous.py    the state machine of a rendezvous point, which encodes what it releases
    block_frames.py    the frames of many notifications, made at once
    frame_warming.py   loads the kernels for parts before the first part comes
    frame_kernels.py   their bytes, written by a compiled loop

Used only inside `broker`, by root_node.py. Start at framed_rendezvous.py.
"""
