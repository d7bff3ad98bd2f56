"""A class of an application, installed as an entry point in a folder of its own."""

from __future__ import annotations

from pathlib import Path

CODE = '''
class Portfolios:
    """An interest is a list of securities, `SAP ALV`; a notification has a security and a price."""

    version = "{version}"

    def __init__(self, currency="EUR", renamed=None):
        """`renamed`: other names of securities."""
        self.currency = currency
        self.renamed = renamed or {{}}

    def columns(self):
        return {{"security": "string", "amount": "double"}}

    def read_interest(self, text):
        names = [self.renamed.get(name, name) for name in text.split()]
        if not names:
            raise ValueError("found no security, expected at least one")
        return "security IN (" + ", ".join(f"'{{name}}'" for name in names) + ")"

    def read_event(self, event):
        if event.get("price") == "crash":
            raise RuntimeError("a bug")
        if event.get("price") == "unnamed":
            return {{7: event["price"]}}
        if event.get("currency", self.currency) != self.currency:
            raise ValueError(f"found {{event['currency']}}, expected {{self.currency}}")
        name = event["name"].upper()
        return {{"security": self.renamed.get(name, name), "amount": event.get("price")}}


class Broken:
    def __init__(self):
        raise RuntimeError("no database")
'''


def install(folder: Path, version: str = "1") -> Path:
    """Put this folder on the path of Python, and the class is installed."""
    package = folder / "kinds_for_tests-1.0.dist-info"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "kinds_for_tests.py").write_text(CODE.format(version=version))
    (package / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kinds-for-tests\nVersion: 1.0\n"
    )
    (package / "entry_points.txt").write_text(
        "[tidings.preprocessors]\n"
        "portfolios = kinds_for_tests:Portfolios\n"
        "broken = kinds_for_tests:Broken\n"
        "absent = kinds_for_tests:Absent\n"
    )
    return folder
