"""Commands on stored subscriptions and declarations: `tidings subscriptions`, `tidings snapshot`,
and some of `tidings channel`.

    subscriptions_command.py   add, load, drop, list, log, repair: the change log of pipelines
    subscription_logs.py       finds the log that a command refers to, and converts ids
    declare_command.py         channel create, declare, show: the attributes of a channel
    import_command.py          channel import: converts what an older release wrote
    snapshot_command.py        compiles subscriptions into a folder, and inspects the folder
    snapshot_tree.py           the content graph of a snapshot, drawn as a tree

The work is done in `store`, `snapshots` and `spark`. Used only by app.py. Start at
subscriptions_command.py.
"""
