r"""Content graphs, which record the coverings between interests, and preprocessors, which tag
notifications.

         origin = 'EWR'      delay > 30           an edge from A to B: A covers B and nothing lies
                    \        /      \              between. A path from A to B: A covers B.
     origin = 'EWR' AND delay > 60    delay > 90

    lattice.py                     shared by every kind of graph: numbers, edges, a version
    content_graph.py, node.py      graphs of filters, inserted one by one or built in bulk
    interest_graph.py, topics.py, classes.py, objects.py    graphs of an application's own interests
    preprocessor.py                two methods for every kind: subscribe and tag
    authority.py, history.py       many preprocessors for one graph; tags of older versions
    picture.py, picture_layout.py  a graph as SVG

No I/O. Users import graphs and preprocessors from `tidings`; only other rooms use `Lattice`,
`Vertex`, `draw` and `layers_of`. Start at content_graph.py; docs/content-graph.md is for users.
"""

from tidings.graph.authority import Authority, StatelessPreprocessor, Tag
from tidings.graph.classes import ClassGraph, TypePreprocessor
from tidings.graph.content_graph import ContentGraph
from tidings.graph.interest_graph import InterestNode
from tidings.graph.lattice import Lattice, Vertex
from tidings.graph.node import Node
from tidings.graph.objects import ObjectGraph, ObjectPreprocessor, SubscriptionObject
from tidings.graph.picture import draw
from tidings.graph.picture_layout import layers_of
from tidings.graph.preprocessor import DynamicPreprocessor, Preprocessor
from tidings.graph.topics import StaticPreprocessor, TopicGraph

__all__ = [
    "Authority",
    "ClassGraph",
    "ContentGraph",
    "DynamicPreprocessor",
    "InterestNode",
    "Lattice",
    "Node",
    "ObjectGraph",
    "ObjectPreprocessor",
    "Preprocessor",
    "StatelessPreprocessor",
    "StaticPreprocessor",
    "SubscriptionObject",
    "Tag",
    "TopicGraph",
    "TypePreprocessor",
    "Vertex",
    "draw",
    "layers_of",
]
