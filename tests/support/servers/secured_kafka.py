"""A real broker whose clients have to say who they are: TLS with SCRAM, and TLS with certificates on both sides.

It has an open listener as well, for the broker's own start and for what a test produces and reads; what is under test is told
the secured ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.support.servers.certificates import Authority, Signed
from tidegate_bricks.broker_config import ExtraListener
from tidegate_bricks.free_ports import LOOPBACK, free_port
from tidegate_bricks.kafka_broker import KafkaBrick

MECHANISM = "SCRAM-SHA-512"
USER = "tide"
PASSWORD = "a password that must be nowhere"
KEY_PASSWORD = "a key's password that must be nowhere"
ELSEWHERE = "elsewhere.example"
"""A host that is not ours: a certificate for it is signed by the right authority, and yet not good for our broker."""
ITERATIONS = 4_096
"""Least that brokers take."""
ANSWER_S = 20.0
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class SecuredKafka:
    """A broker with four ways in, all `host:port`.

    Attributes:
        open: Without encryption.
        scram: TLS, and logging in as `USER` with `PASSWORD`.
        mutual: TLS, and `client` to show.
        misnamed: As `scram`, with the certificate of another host.
        authority: PEM file that all certificates here go back to.
        stranger: PEM file of an authority that signed none of them.
        client: Our own certificate; its key is encrypted with `KEY_PASSWORD`.
    """

    open: str
    scram: str
    mutual: str
    misnamed: str
    authority: Path
    stranger: Path
    client: Signed


@contextmanager
def secured_kafka(folder: Path, users: Sequence[str] = (USER,), *, authorizing: bool = False) -> Iterator[SecuredKafka]:
    """Starts the broker from local jars, with its certificates in `folder`.

    Args:
        folder: Is there.
        users: Who may log in, each with `PASSWORD`.
        authorizing: Nobody may do anything without an ACL that says so, but for who comes by the open listener.
    """
    authority = Authority(folder, "authority")
    ports: list[int] = []
    for _ in ("SCRAM", "MUTUAL", "MISNAMED"):
        ports.append(free_port(avoid=frozenset(ports)))
    listeners = [
        ExtraListener(name, port, port) for name, port in zip(("SCRAM", "MUTUAL", "MISNAMED"), ports, strict=True)
    ]
    good, wrong = authority.sign("broker", host=LOOPBACK), authority.sign("misnamed", host=ELSEWHERE)
    properties = {
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,SCRAM:SASL_SSL,MUTUAL:SSL,MISNAMED:SASL_SSL,CONTROLLER:PLAINTEXT",
        **_encrypted("scram", good, authority),
        **_encrypted("mutual", good, authority),
        **_encrypted("misnamed", wrong, authority),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    if authorizing:
        properties |= {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    for name in ("scram", "misnamed"):
        properties |= {
            f"listener.name.{name}.sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.{name}.{MECHANISM.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
        }
    scram, mutual, misnamed = (f"{LOOPBACK}:{port}" for port in ports)
    with KafkaBrick(None, extra_listeners=listeners, extra_config=properties) as brick:
        _make_users(brick.bootstrap_servers, users)
        yield SecuredKafka(
            open=brick.bootstrap_servers,
            scram=scram,
            mutual=mutual,
            misnamed=misnamed,
            authority=authority.file,
            stranger=Authority(folder, "stranger").file,
            client=authority.sign("client", password=KEY_PASSWORD),
        )


def _encrypted(listener: str, own: Signed, authority: Authority) -> dict[str, str]:
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }
    return {f"listener.name.{listener}.{name}": value for name, value in stores.items()}


def _make_users(bootstrap_servers: str, names: Sequence[str]) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    users: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(name, info, PASSWORD.encode()) for name in names
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for answer in admin.alter_user_scram_credentials(users).values():
        answer.result(ANSWER_S)
