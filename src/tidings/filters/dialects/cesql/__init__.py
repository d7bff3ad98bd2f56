"""CloudEvents SQL 1.0.0: the expression language of CloudEvents.

    text ──parser──> nodes (syntax) ──translate──> Expression: sets where sets can say it,
                        |                                       cesql('...') elsewhere
                        `──machine, values, builtins──> the value on an event, by the specification
                                ^
                             program: what cesql('...') calls

Its errors are not SQL's null, so translate.py asks each condition three questions: is it true, is
it false, is there no error? machine.py is the reference that translations are tested against.

Used only inside the room `filters`. Start at dialect.py, then translate.py; docs/dialects.md is for
users.
"""
