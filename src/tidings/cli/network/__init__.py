"""Commands of the network: `tidings router`, `up`, `top`, `publish` and `subscribe`.

    network_commands.py        one node, one publication, one subscription
    up_command.py             a whole tree of nodes from one file
    top_command.py            a running network, as it is now
    network_view.py   the tree of a running network as a table, or as JSON

The work is done in `broker` and `network`. Used only by app.py. Start at network_commands.py.
"""
