"""Which filter covers which: the content graph, and the preprocessor that keeps one."""

from tidings.graph.content_graph import ContentGraph
from tidings.graph.node import Node
from tidings.graph.preprocessor import DynamicPreprocessor, Preprocessor

__all__ = ["ContentGraph", "DynamicPreprocessor", "Node", "Preprocessor"]
