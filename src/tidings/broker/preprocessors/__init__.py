"""A running preprocessor, which tags for agents and signs grants.

    agent ──Preprocess──> preprocessor_node.py ──> the view of the channel ──> tags
    agent ──Propose─────> granting.py ──> the node of a filter, signed for an hour
                  `─────> proposing.py ──> its place ──Suggest──> rendezvous point

    preprocessor_node.py   the process: an agent of the channel that answers other agents
    granting.py            signs grants: which agent may subscribe to which node
    proposing.py           finds the places of new filters in the graph

Used by `tidings preprocessor`. Users import `PreprocessorNode` from `tidings.broker`. Start at
preprocessor_node.py.
"""
