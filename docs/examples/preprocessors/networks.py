"""An application-defined preprocessor: IP networks, which contain each other.

Prints:

10.0.0.0/8 covers 10.1.0.0/16
10.1.2.3 goes to 10.1.2.0/24
10.9.9.9 goes to 10.0.0.0/8
2001:db8::1 goes to 2001:db8::/32
8.8.8.8 goes to nobody
"""

from ipaddress import ip_address, ip_network

import tidings


class Network:
    def __init__(self, text: str) -> None:
        self.network = ip_network(text)

    def covers(self, other: "Network") -> bool:
        same = self.network.version == other.network.version
        return same and other.network.subnet_of(self.network)

    def matches(self, notification: str) -> bool:
        return ip_address(notification) in self.network

    def key(self) -> str:
        return str(self.network)

    def __str__(self) -> str:
        return str(self.network)


desk = tidings.ObjectPreprocessor()
for text in ("10.1.2.0/24", "10.0.0.0/8", "2001:db8::/32", "10.1.0.0/16"):
    desk.subscribe(Network(text))

top = desk.subscribe(Network("10.0.0.0/8"))  # this node exists already
print(top.interest, "covers", *(node.interest for node in desk.graph.children(top)))

for address in ("10.1.2.3", "10.9.9.9", "2001:db8::1", "8.8.8.8"):
    found = [str(node.interest) for node in desk.tag(address)]
    print(address, "goes to", ", ".join(found) or "nobody")
