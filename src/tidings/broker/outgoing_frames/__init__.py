"""Encodes the notifications that a rendezvous point sends, as frames.

    Record ──frames.encode_marked──┐
    Block  ──block_frames──────────┴──> runs of frames ──> forwarded

    framed_rendezvous.py    the state machine of a rendezvous point, which encodes what it releases
    block_frames.py    the frames of many notifications, made at once
    frame_kernels.py   the kernel that lays out the bytes of these frames
    frame_warming.py   loads the kernels for parts and runs before the first of them arrives

Used only inside `broker`, by root_node.py. Start at framed_rendezvous.py.
"""
