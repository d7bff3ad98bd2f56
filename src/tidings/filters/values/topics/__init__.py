"""Ontologies: topics, and which topic lies under which.

    a file ──topic_texts──> ontology: topics, each with its parents
    two ontologies ──revision──> the later one, in which removed topics have substitutes

    ontology.py      topics with their parents, synonyms and numbers
    revision.py      a new ontology in place of another: what becomes of removed topics
    topic_texts.py   the file formats of ontologies

This folder is used inside filters, by graph, and by the rooms that define channels. Start at
ontology.py.
"""

from tidings.filters.values.topics.ontology import Ontology
from tidings.filters.values.topics.revision import Revision, revise
from tidings.filters.values.topics.topic_texts import read_ontology

__all__ = ["Ontology", "Revision", "read_ontology", "revise"]
