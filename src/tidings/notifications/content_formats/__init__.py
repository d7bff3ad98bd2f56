"""The attributes of a notification, in each of the formats in which they can be sent.

    first byte   {        JSON         {"price": 95.0}
                 0x80..   MessagePack  the same, shorter
                 <        XML          <n><price type="double">95.0</price></n>

The first byte distinguishes the formats, so a channel accepts all of them. A CloudEvent in
structured mode is decoded like any other JSON object.

    content_decoder.py   decodes any format
    xml_content.py       elements as attributes
    streams.py           splits files with many notifications in XML or MessagePack
    row_content.py       the row of a pipeline: JSON, and the types that JSON does not have

Used by channel, which tags notifications, by routing, which passes the attributes of notifications
to subscribers, and by `tidings publish`; not for users. Start at content_decoder.py.
"""

from tidings.notifications.content_formats.content_decoder import decode_content, is_json
from tidings.notifications.content_formats.row_content import decode_row, types_of
from tidings.notifications.content_formats.streams import split_msgpack, split_xml

__all__ = ["decode_content", "decode_row", "is_json", "split_msgpack", "split_xml", "types_of"]
