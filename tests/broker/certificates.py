"""Authorities and certificates for tests, made on the spot."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = dt.timedelta(days=1)


class Files(msgspec.Struct, frozen=True):
    """Where a certificate and its key are."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its own is at `path`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(f"authority {name}")
        certificate = (
            _begun(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(
        self,
        name: str,
        *,
        hosts: tuple[str, ...] = ("localhost",),
        addresses: tuple[str, ...] = ("127.0.0.1",),
        uris: tuple[str, ...] = (),
        expired: bool = False,
    ) -> Files:
        """A certificate with a name, for servers and clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        others: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        others += [x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
        others += [x509.UniformResourceIdentifier(one) for one in uris]
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        begun = _begun(_named(name), self._name, key.public_key(), days=-1 if expired else 1)
        if others:
            begun = begun.add_extension(x509.SubjectAlternativeName(others), critical=False)
        certificate = begun.add_extension(x509.ExtendedKeyUsage(uses), critical=False).sign(
            self._key, hashes.SHA256()
        )
        stem = f"{self.path.stem}-{name}{'-expired' if expired else ''}"
        files = Files(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
        files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 1
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 3 * DAY)
        .not_valid_after(now + days * DAY)
    )
