"""A whole tree of nodes as processes on this machine: `tidings up`.

    tree_file.py ──> tree_settings.py, tree_members.py, tree_tls.py    the file, read and checked
    running_tree.py    the processes: started, kept running, and stopped in order
    node_process.py, node_file.py    one of these processes, and the file that it gets

Used by cli, which imports it from `broker`. Start at tree_file.py.
"""

from tidings.broker.trees.node_process import ProcessState
from tidings.broker.trees.running_tree import RunningTree
from tidings.broker.trees.tree_file import load_tree
from tidings.broker.trees.tree_settings import Tree

__all__ = ["ProcessState", "RunningTree", "Tree", "load_tree"]
