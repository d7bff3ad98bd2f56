"""The filters of the CloudEvents Subscriptions API: JSON objects.

    exact  prefix  suffix  all  any  not  sql

    [{"prefix": {"type": "com.example."}}, {"sql": "INT(priority) > 5"}]     all must be true

A filter is true or false, never an error. `sql` is parsed by the dialect `cesql`; the other kinds
become tests on attributes, so an index can use them.

This folder is used only by the registry of dialects. Start at dialect.py, the only module.
"""
