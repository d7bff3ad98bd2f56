"""The settings in a node's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tidings.broker.admission.listen import Address, Direct
from tidings.broker.admission.permissions import TokenRights
from tidings.broker.config.preprocessor_table import (
    PreprocessorTable,
)
from tidings.broker.config.relations_table import RelationsTable
from tidings.filters import Attributes
from tidings.model import Extra, TidingsError
from tidings.preprocessing import KindDefinition
from tidings.routing.protocol import Limits


class ConfigError(TidingsError):
    """A configuration file can't be used; the message says why, where, and what was expected."""


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    certificate: str
    key: str
    authorities: str | None = None


class OtherChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A channel that a router carries besides its own."""

    upstream: str = ""
    limits: dict[str, int] = {}


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    listen: str
    upstream: str | list[str] | None = None
    journal: str | None = None
    channel: str = ""
    token: str = ""
    token_file: str | None = None
    policy: Literal["drop", "disconnect"] = "drop"
    forwarding: Literal["adaptive", "labels", "lists"] = "adaptive"
    bandwidth: Annotated[float, msgspec.Meta(gt=0)] | None = None
    places: Literal["upstream", "preprocessor"] = "upstream"
    show_token: bool = False
    extra: Extra | None = None
    columns: dict[str, Any] = {}  # names with types, perhaps in nested tables
    preprocessor: PreprocessorTable = PreprocessorTable()
    relations: RelationsTable | None = None
    tokens: dict[str, str | TokenRights] | None = None
    tls: Tls | None = None
    times: dict[str, float] = {}
    limits: Limits = Limits()
    upstreams: dict[str, str | list[str]] = {}
    channels: dict[str, str | OtherChannel] = {}
    direct: Direct | None = None
    grants: dict[str, str] | None = None  # public keys whose grants are accepted, by name
    tickets: dict[str, str] | None = None  # public keys whose tickets are accepted, by name
    ticket_key: str | None = None
    public: str | None = None
    ticket_secret: str = ""  # what the file `ticket_key` contains
    kind: KindDefinition = KindDefinition()  # what `preprocessor` defines
    folder: Path = Path()
    warnings: tuple[str, ...] = ()  # secret files that other users may read, and odd tokens

    def at(self, path: str) -> Path:
        return (self.folder / path).absolute()


def declared_attributes(
    columns: dict[str, Any], extra: Extra | None, kind: KindDefinition
) -> Attributes | None:
    """The attributes that a file declares; None if there are none."""
    if not columns and not (kind.kind != "content" and extra):
        return None
    return Attributes(columns, extra=extra)


def list_addresses(given: str | list[str] | None) -> list[str]:
    """One address or several, as a list."""
    return [given] if isinstance(given, str) else given or []


def address_of(text: str, what: str) -> Address:
    """The address HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) < 65536:
        raise ConfigError(
            f"{what}: found {text!r}, expected a host and a port, such as 127.0.0.1:7400"
        )
    return Address(host.strip("[]"), int(port))
