"""`tidings relations`: what the relation repository learns from events.

    relations_command.py   routes events, and ranks what was learnt
    relation_picture.py    places on a map and days on a time line, as SVG

The work is done in `tidings.relations`. Used by app.py and the demo. Start at
relations_command.py.
"""
