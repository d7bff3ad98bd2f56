"""CloudEvents SQL 1.0.0: the expression language of CloudEvents.

    text ──parser──> nodes (syntax) ──translate──> Expression: tests on sets where possible,
                        |                                       cesql('...') elsewhere
                        `──machine, cesql_values, builtins──> the value on an event, by the standard
                                ^
                             program: runs cesql('...')

An error in CloudEvents SQL is different from null in SQL. So translate.py answers three questions
about each condition: is it true, is it false, is it free of errors? Translations are tested against
machine.py, the reference.

This folder is used only inside the room `filters`. Start at dialect.py, then translate.py;
docs/dialects.md is for users.
"""
