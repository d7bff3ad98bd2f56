"""A static preprocessor: topics from a file, known before anyone subscribes.

Prints:

american league covers boston, new york, texas
boston lies under massachusetts, american league
a Red Sox game in the series: boston, world series
there is no topic 'bostn'; did you mean 'boston'?
"""

from pathlib import Path

import tidings

ontology = tidings.load_ontology(Path(__file__).with_name("baseball.json"))
desk = tidings.StaticPreprocessor(ontology)

league = desk.subscribe("american league")
print("american league covers", ", ".join(n.interest for n in desk.graph.children(league)))

boston = desk.subscribe("boston")
print("boston lies under", ", ".join(n.interest for n in desk.graph.parents(boston)))

# A notification names its topics; a topic above another one is not needed.
tag = desk.tag(["boston", "world series", "baseball"])
print("a Red Sox game in the series:", ", ".join(node.interest for node in tag))

try:
    desk.subscribe("bostn")
except tidings.GraphError as refused:
    print(refused)
