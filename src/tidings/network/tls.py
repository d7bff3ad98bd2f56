"""TLS contexts with the settings of tidings, and sentences that explain TLS errors."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from os import PathLike
from typing import Any
from urllib.parse import unquote

from tidings.model import EnvironmentProblem
from tidings.network.router_url import RouterUrl

Path = str | PathLike[str]
OURS = "tidings:router/"  # the prefix of a URI that names a router

_SENTENCES = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "RECORD_LAYER_FAILURE": "it does not speak TLS",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it expects a certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority of our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept our certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks another version of TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks another version of TLS",
}


def client_context(authorities: Path | None = None) -> ssl.SSLContext:
    """The context of a client. The server must have a certificate for its host name, signed by one
    of these authorities. Without `authorities`, it must be signed by an authority that this machine
    trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # in certificates for tidings, common names are names of routers, not of hosts
    context.hostname_checks_common_name = False
    if authorities is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        load_authorities(context, authorities)
    return context


def context_for(
    place: RouterUrl, given: ssl.SSLContext | None, authorities: Path | None
) -> ssl.SSLContext | None:
    """The context of a connection to a router; None without TLS."""
    if place.secure:
        return given or client_context(authorities)
    if authorities is not None:
        raise EnvironmentProblem(
            f"found certificate authorities for the address tidings://{place.host}:{place.port}, "
            "which does not use TLS; expected an address with tidings+tls://"
        )
    return given


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The context of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, certificate, key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Load a certificate into a context; raise EnvironmentProblem if it can't be used."""
    try:
        # otherwise, OpenSSL would ask on the terminal for the password of a key
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as problem:
        reason = _reason_of(problem)
        raise EnvironmentProblem(
            f"the certificate {certificate} with the key {key} can't be used: {reason}"
        ) from None


def load_authorities(context: ssl.SSLContext, authorities: Path) -> None:
    """Let a context trust these authorities; raise EnvironmentProblem if they can't be used."""
    try:
        context.load_verify_locations(authorities)
    except (OSError, ValueError) as problem:
        raise EnvironmentProblem(
            f"the certificate authorities {authorities} can't be used: {_reason_of(problem)}"
        ) from None


def names_in(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The names of routers in a certificate, given in the form of `getpeercert`: the names in URIs
    of tidings, or the common name if there is no such URI. DNS names are ignored: they name the
    hosts on which a server may listen, not the router."""
    uris = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"}
    names = {unquote(value.removeprefix(OURS)) for value in uris if value.startswith(OURS)}
    if names:
        return frozenset(names)
    parts = (part for group in certificate.get("subject", ()) for part in group)
    return frozenset(value for kind, value in parts if kind == "commonName")


def sentence_of(problem: BaseException) -> str:
    """A sentence about the other end that says what went wrong with a connection."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {problem.verify_message.rstrip('.')}"
    if isinstance(problem, ssl.SSLError):
        reason = problem.reason or ""
        return _SENTENCES.get(reason) or f"TLS failed: {reason.replace('_', ' ').lower()}"
    return str(problem) or "it closed the connection"


def _no_password() -> str:
    raise ValueError("the key has a password")


def _reason_of(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or "not in PEM format").replace("_", " ").lower()
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)
