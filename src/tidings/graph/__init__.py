"""Which interest covers which: content graphs, and the preprocessors that keep them."""

from tidings.graph.authority import Authority, StatelessPreprocessor, Tag
from tidings.graph.classes import ClassGraph, TypePreprocessor
from tidings.graph.content_graph import ContentGraph
from tidings.graph.interest_graph import InterestNode
from tidings.graph.lattice import Lattice, Vertex
from tidings.graph.layout import layers_of
from tidings.graph.node import Node
from tidings.graph.objects import ObjectGraph, ObjectPreprocessor, SubscriptionObject
from tidings.graph.picture import draw
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
