"""Certificates that live for a day, for tests of encrypted connections: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

LIFE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate with its private key, as PEM files.

    Attributes:
        both: Key and certificate in one file, as Kafka's PEM key stores want them.
    """

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates; `file` is what makes others believe them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.BasicConstraints(ca=True, path_length=0)
        made = _certificate(self._name, self._name, self._key.public_key()).add_extension(usage, critical=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def sign(self, name: str, *, host: str | None = None, password: str | None = None) -> Signed:
        """Makes a key and signs its certificate.

        Args:
            name: Its common name, and that of its files.
            host: Host name or address that it is good for as a server's; None for a client's.
            password: Encrypts the key.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _certificate(subject, self._name, key.public_key())
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        signed = Signed(*(self._folder / f"{name}.{kind}.pem" for kind in ("certificate", "key", "both")))
        signed.certificate.write_bytes(certificate)
        signed.key.write_bytes(private)
        signed.both.write_bytes(private + certificate)
        return signed


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + LIFE)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
