"""Commands of the network: `router`, `channel`, `preprocessor`, `key`, `up`, `top`, `publish` and
`subscribe`.

    router_command.py         runs a node
    channel_command.py        publishes a revised definition of a channel, or adopts a snapshot
    preprocessor_command.py   runs a preprocessor
    key_command.py            makes a key that signs grants or tickets
    publish_command.py, subscribe_command.py    connect to a router (connecting.py)
    grant_file.py             files with a signed grant
    up_command.py             starts a whole tree of nodes from one file
    top_command.py            shows a running network
    network_view.py           the tree of a running network as a table, or as JSON
    network_tables.py         its preprocessors and its channels, as rows

The work is done in `broker` and `network`. Used only by app.py. Start at subscribe_command.py.
"""
