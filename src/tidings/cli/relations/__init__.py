"""`tidings relations`: what the relation repository learns from events, or what a running node has
learnt.

    relations_command.py   routes events, or asks a node
    learnt_view.py         ranks what was learnt, and draws its clusters
    relation_picture.py    places on a map and days on a time line, as SVG

The work is done in `tidings.relations`. Used by app.py and the demo. Start at
relations_command.py.
"""
