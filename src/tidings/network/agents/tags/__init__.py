"""The tags of an agent's notifications. Each tag is found by the agent or a preprocessor, or was
obtained in advance.

    notification ──> untagged.py ──> following.py       a view of the nodes, in this process
                     (in order)  ──> preprocessors.py   a question to a preprocessor
                                 ──> no tag             the rendezvous point tags

    following.py      tags in the agent's own process, which follows the nodes of the channel
    preprocessors.py  tags from preprocessors, which the agent finds through the channel
    untagged.py       notifications that wait for their tags
    header.py         a tag that was obtained in advance

Used by publishing.py and agent_channel.py. Users get `Header` from `tidings`. Start at untagged.py.
"""
