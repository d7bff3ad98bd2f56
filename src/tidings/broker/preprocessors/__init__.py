"""A running preprocessor, which tags for agents and signs grants.

    agent ──Preprocess──> preprocessor.py ──> the view of the channel ──> tags
    agent ──Propose─────> granting.py ──> the node of a filter, signed for an hour

    preprocessor.py   the process: an agent of the channel that answers other agents
    granting.py       signs grants: which agent may subscribe to which node

Used by `tidings preprocessor`. Users import `PreprocessorNode` from `tidings.broker`. Start at
preprocessor.py.
"""
