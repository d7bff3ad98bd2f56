"""Commands on stored subscriptions: `tidings subscriptions` and `tidings snapshot`.

    subscriptions_command.py   add, load, drop, list, log, repair: the change log of pipelines
    subscription_logs.py       which log a command means, and what ids are in it
    snapshot_command.py        compile subscriptions into a folder, and look at what is in it
    snapshot_tree.py           the content graph of a snapshot, drawn as a tree

The work is done in `store`, `snapshots` and `spark`. Used only by app.py. Start at
subscriptions_command.py.
"""
