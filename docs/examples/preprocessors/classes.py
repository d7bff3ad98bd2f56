"""A type-based preprocessor: the classes of an application, and its objects.

Prints:

Event covers Quote, Trade
a Quote goes to Quote
a Cross goes to Quote, Trade
the class int does not inherit from Event
"""

import tidings


class Event: ...


class Quote(Event): ...


class Trade(Event): ...


class Cross(Quote, Trade):
    """Nobody subscribes to this class; subscribers to quotes or trades get its objects."""


desk = tidings.TypePreprocessor(Event)
event, *_ = (desk.subscribe(cls) for cls in (Event, Quote, Trade))
print("Event covers", ", ".join(n.interest.__name__ for n in desk.graph.children(event)))

for notification in (Quote(), Cross()):
    found = [node.interest.__name__ for node in desk.tag(notification)]
    print("a", type(notification).__name__, "goes to", ", ".join(found))

try:
    desk.subscribe(int)
except tidings.GraphError as refused:
    print(refused)
