"""Attributes as XML: each element gives one attribute, and its text is the value.

    <quote>
      <symbol>ACME</symbol>                      "ACME"
      <price type="double">95.5</price>          95.5
      <tag>new</tag><tag>hot</tag>               ["new", "hot"], because the name occurs twice
      <place><city>Bonn</city></place>           {"city": "Bonn"}
      <volume nil="true"/>                       null
      <attribute name="geo.zone">EU</attribute>  for names that can't be element names
    </quote>

The name of the outermost element does not matter. `type` is string, integer, double or boolean.
Without `type`, a value is a string, which is converted if the attribute is declared with another
type. A document type is refused, because its entities could expand without limit or refer to files.
"""

from __future__ import annotations

import math
from typing import Any
from xml.parsers import expat
from xml.parsers.expat import errors

from tidings.model import NotificationError

DEEPEST = 50  # levels of elements
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
FEATURES = {"type", "nil", "name"}  # the attributes that elements may have


class _Element:
    """An element that is being read."""

    def __init__(self, name: str, kind: str, *, nil: bool) -> None:
        self.name, self.kind, self.nil = name, kind, nil
        self.texts: list[str] = []
        self.inner: dict[str, Any] = {}
        self.listed: set[str] = set()  # the names of which there were several elements

    def add(self, name: str, value: Any) -> None:
        if name in self.listed:
            self.inner[name].append(value)
        elif name in self.inner:
            self.inner[name] = [self.inner[name], value]
            self.listed.add(name)
        else:
            self.inner[name] = value


class _Reader:
    """Handles the events of the XML parser."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._take_text
        self._open: list[_Element] = []
        self.found: dict[str, Any] = {}

    def read(self, content: bytes) -> None:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as problem:
            if problem.code == errors.codes[errors.XML_ERROR_UNDEFINED_ENTITY]:
                raise NotificationError(
                    f"XML, line {problem.lineno}: found an entity that XML itself does not define, "
                    "expected &amp; &lt; &gt; &apos; or &quot;, or a character reference such as "
                    "&#228;"
                ) from None
            raise NotificationError(f"the notification is not valid XML: {problem}") from None
        except LookupError as problem:  # of the codec that the document names
            raise NotificationError(
                f"the notification is not valid XML: {problem}; expected UTF-8"
            ) from None

    def _refuse_doctype(self, *_: Any) -> None:
        raise refuse_doctype(self._parser.CurrentLineNumber)

    def _start(self, name: str, features: dict[str, str]) -> None:
        if len(self._open) > DEEPEST:
            raise self._problem(f"found more than {DEEPEST} levels of elements")
        if not self._open:
            self._open.append(_Element(name, "", nil=False))
            return
        for feature in features.keys() - FEATURES:
            raise self._problem(
                f"element {name}: found the attribute {feature!r}, expected type, nil or name"
            )
        if name == "attribute" and "name" in features:
            name = features["name"]
        nil = TRUTHS.get(features.get("nil", "false"))
        if nil is None:
            raise self._problem(
                f"element {name}: found nil={features['nil']!r}, expected true or false"
            )
        self._open.append(_Element(name, features.get("type", ""), nil=nil))

    def _take_text(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def _end(self, _: str) -> None:
        element = self._open.pop()
        if not self._open:
            if "".join(element.texts).strip():
                raise self._problem(f"element {element.name}: found text, expected elements only")
            self.found = element.inner
        else:
            self._open[-1].add(element.name, self._value(element))

    def _value(self, element: _Element) -> Any:
        text = "".join(element.texts)
        if element.inner:
            if text.strip() or element.kind or element.nil:
                raise self._problem(
                    f"element {element.name}: found child elements together with text, or with a "
                    "`type` or `nil` attribute; expected only child elements or only text"
                )
            return element.inner
        if element.nil:
            if text:
                raise self._problem(
                    f"element {element.name}: found both nil and text, expected only one of them"
                )
            return None
        value = _convert(text, element.kind)
        if value is None:
            raise self._problem(
                f"element {element.name}: found {text.strip()!r}, expected type {element.kind!r}"
                if element.kind in ("integer", "double", "boolean")
                else f"element {element.name}: found type {element.kind!r}, expected string, "
                f"integer, double or boolean"
            )
        return value

    def _problem(self, sentence: str) -> NotificationError:
        return NotificationError(f"XML, line {self._parser.CurrentLineNumber}: {sentence}")


def refuse_doctype(line: int) -> NotificationError:
    return NotificationError(
        f"XML, line {line}: found a document type declaration, expected elements only; entities "
        "that it declares are not supported, because they could expand without limit or refer to "
        "files"
    )


def _convert(text: str, kind: str) -> Any:
    """Convert text to a type; None if the text does not fit the type."""
    if kind in ("", "string"):
        return text
    text = text.strip()
    try:
        if kind == "integer" and text.isascii() and "_" not in text:
            return int(text)
        if kind == "double" and text.isascii() and "_" not in text:
            value = float(text)
            return value if math.isfinite(value) else None
    except ValueError:
        return None
    return TRUTHS.get(text) if kind == "boolean" else None


def decode_xml(content: bytes) -> dict[str, Any]:
    """The attributes of a notification; raises NotificationError if it is refused."""
    reader = _Reader()
    reader.read(content)
    return reader.found
