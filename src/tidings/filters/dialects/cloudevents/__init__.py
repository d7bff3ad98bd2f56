"""The filters of the CloudEvents Subscriptions API: objects of JSON.

    exact  prefix  suffix  all  any  not  sql

    [{"prefix": {"type": "com.example."}}, {"sql": "INT(priority) > 5"}]     all must be true

A filter is true or false, never an error. `sql` is read by the dialect `cesql`; the others become
tests of attributes, so an index can use them.

Used only by the registry of dialects. Start at dialect.py, the only module.
"""
