"""Splits files with many notifications: XML documents, or maps in MessagePack, one after another.

    <n><price>95</price></n> <n>...</n>     split where the parser finds that a document has ended
    82 a1 78 01 a1 79 02  81 ...            split by the lengths that MessagePack writes first

Each part can be decoded with `decode_content`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.parsers import expat
from xml.parsers.expat import errors

from tidings.model import NotificationError
from tidings.notifications.content_formats.xml_content import refuse_doctype

_ENDED = {
    errors.codes[errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT],
    errors.codes[errors.XML_ERROR_MISPLACED_XML_PI],
}
_BLANKS = b" \t\r\n"
# the types of a fixed length: the number of bytes after the first byte
_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8,
          0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9,
          0xD8: 17}  # fmt: skip
# the types with a length field: the size of this field, and the size of the type field after it, in
# bytes
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1),
          0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}  # fmt: skip
# containers: the size of the count field in bytes, and how many values belong to each entry
_COUNTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def split_xml(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (line, document) for each document; raises NotificationError if one is not XML. Data in
    UTF-16 is yielded as it is, because `decode_content` says what is wrong with it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield 1, data
        return
    view, line, at = memoryview(data), 1, 0
    while True:
        begin = at
        while at < len(data) and data[at] in _BLANKS:
            at += 1
        line += data.count(b"\n", begin, at)
        if at == len(data):
            return
        size = _find_end(view[at:], line)
        yield line, bytes(view[at : at + size]).rstrip(_BLANKS)
        line += data.count(b"\n", at, at + size)
        at += size


def _find_end(data: memoryview, line: int) -> int:
    """The length of the first document."""
    parser = expat.ParserCreate()

    def refuse(*_: Any) -> None:
        raise refuse_doctype(line - 1 + parser.CurrentLineNumber)

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as problem:
        if problem.code in _ENDED and parser.ErrorByteIndex > 0:
            return parser.ErrorByteIndex
        # the content is checked when the document is decoded, which gives better reasons
        if problem.code == errors.codes[errors.XML_ERROR_UNDEFINED_ENTITY]:
            return len(data)
        where = f"line {line - 1 + problem.lineno}, column {problem.offset}"
        said = errors.messages[problem.code]
        raise NotificationError(f"this is not valid XML: {said}: {where}") from None
    return len(data)


def split_msgpack(data: bytes) -> Iterator[bytes]:
    """Yield consecutive values, one by one; raises NotificationError if one of them is not
    MessagePack, or is incomplete."""
    at = 0
    while at < len(data):
        end = _skip_value(data, at)
        yield data[at:end]
        at = end


def _skip_value(data: bytes, at: int) -> int:
    """The offset at which a value ends; the value begins at `at`. Nested values are counted,
    without recursion, so values may be nested to any depth."""
    begin, left = at, 1
    while left:
        if at >= len(data):
            raise _incomplete(begin)
        first, at, left = data[at], at + 1, left - 1
        if first in _COUNTED:
            size, each = _COUNTED[first]
            left += each * int.from_bytes(data[at : at + size])
            at += size
        elif first in _SIZED:
            size, more = _SIZED[first]
            at += size + more + int.from_bytes(data[at : at + size])
        elif first in _FIXED:
            at += _FIXED[first]
        elif 0x80 <= first < 0x90:
            left += 2 * (first & 15)
        elif 0x90 <= first < 0xA0:
            left += first & 15
        elif 0xA0 <= first < 0xC0:
            at += first & 31
        elif first == 0xC1:
            raise NotificationError(f"found the byte 0xc1 at byte {at - 1:,}, expected MessagePack")
    if at > len(data):
        raise _incomplete(begin)
    return at


def _incomplete(begin: int) -> NotificationError:
    return NotificationError(f"the MessagePack value that begins at byte {begin:,} is incomplete")
