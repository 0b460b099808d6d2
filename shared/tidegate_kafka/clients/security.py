"""Encryption and login settings of the connections to the brokers, shared by all clients of a process.

A reader of an open connection sees payloads and passwords, and a writer sends requests under any name. So protocols
without encryption are refused unless `allow_plaintext` is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FilePath, SecretStr, model_validator

OPEN: Final = frozenset({"PLAINTEXT", "SASL_PLAINTEXT"})
"""Protocols without encryption."""
WITH_SASL: Final = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})

SECURED: Final = frozenset(
    {
        "enable.ssl.certificate.verification",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
    }
)
"""Client properties that the settings below control: `extra` must not set them."""
SECRET_WORDS: Final = ("key.pem", "oauthbearer.config", "passphrase", "password", "secret")
"""Parts of the names of the client's other secrets. `extra` is shown in full, so it must hold none of them."""


class KafkaSecurity(BaseModel):
    """Encryption and credentials. Names are those of Kafka's clients, with `_` for `.`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT",
        description="Protocol to the brokers. The default is Kafka's own, and is refused unless `allow_plaintext` is set.",
    )
    allow_plaintext: bool = Field(
        default=False,
        description="Allows a protocol without encryption: for one host or a private network. `tidegate dev` sets it.",
    )
    ssl_ca_location: FilePath | None = Field(
        default=None, description="PEM file of the authorities that sign brokers' certificates; unset: the system's."
    )
    ssl_certificate_location: FilePath | None = Field(
        default=None, description="PEM file of this client's certificate, if the brokers require one (mTLS)."
    )
    ssl_key_location: FilePath | None = Field(default=None, description="PEM file of the certificate's private key.")
    ssl_key_password: SecretStr | None = Field(default=None, description="Password of the private key, if it has one.")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        default=None, description="Login mechanism. SCRAM never sends the password; PLAIN does, within the encryption."
    )
    sasl_username: str | None = Field(default=None, min_length=1, description="User name for PLAIN and SCRAM.")
    sasl_password: SecretStr | None = Field(default=None, min_length=1, description="Password for PLAIN and SCRAM.")
    sasl_oauthbearer_token_endpoint_url: str | None = Field(
        default=None, pattern=r"^https://", description="Token endpoint for OAUTHBEARER (OIDC client credentials)."
    )
    sasl_oauthbearer_client_id: str | None = Field(default=None, min_length=1, description="Client id for OAUTHBEARER.")
    sasl_oauthbearer_client_secret: SecretStr | None = Field(
        default=None, min_length=1, description="Client secret for OAUTHBEARER."
    )
    sasl_oauthbearer_scope: str | None = Field(
        default=None, min_length=1, description="Scope for OAUTHBEARER, if the endpoint requires one."
    )

    @model_validator(mode="after")
    def _is_secured_or_allowed_not_to_be(self) -> Self:
        if self.security_protocol in OPEN and not self.allow_plaintext:
            raise ValueError(
                f"security_protocol {self.security_protocol} does not encrypt: set it to SASL_SSL or SSL "
                "(TIDEGATE_KAFKA__SECURITY_PROTOCOL). In a network where no third party can listen, set allow_plaintext to true "
                "(TIDEGATE_KAFKA__ALLOW_PLAINTEXT)"
            )
        if wrong := next(self._contradictions(), None):
            raise ValueError(wrong)
        return self

    def client_properties(self) -> dict[str, str | bool]:
        """Returns the librdkafka properties that these settings stand for, with the secrets in clear text."""
        properties: dict[str, str | bool] = {"security.protocol": self.security_protocol}
        if "SSL" in self.security_protocol:
            properties |= {
                # Both are the client's defaults: a certificate issued for another host is refused.
                "enable.ssl.certificate.verification": True,
                "ssl.endpoint.identification.algorithm": "https",
            }
        if self.sasl_mechanism == "OAUTHBEARER":
            properties["sasl.oauthbearer.method"] = "oidc"
        for name in sorted(KafkaSecurity.model_fields.keys() - {"security_protocol", "allow_plaintext"}):
            value = getattr(self, name)
            if value is not None:
                text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
                properties[name.replace("_", ".")] = text
        return properties

    def _contradictions(self) -> Iterator[str]:
        """Yields each setting that is set but unused, or needed but unset."""
        given = {name for name in KafkaSecurity.model_fields if getattr(self, name) is not None}
        protocol, mechanism = self.security_protocol, self.sasl_mechanism
        needed = set()
        usable = {"security_protocol", "allow_plaintext"}
        if "SSL" in protocol:
            usable |= {"ssl_ca_location", "ssl_certificate_location", "ssl_key_location", "ssl_key_password"}
        if protocol in WITH_SASL:
            needed.add("sasl_mechanism")
        if protocol in WITH_SASL and mechanism == "OAUTHBEARER":
            needed |= {f"sasl_oauthbearer_{name}" for name in ("token_endpoint_url", "client_id", "client_secret")}
            usable.add("sasl_oauthbearer_scope")
        elif protocol in WITH_SASL and mechanism is not None:
            needed |= {"sasl_username", "sasl_password"}
        if {"ssl_certificate_location", "ssl_key_location", "ssl_key_password"} & given:
            needed |= {"ssl_certificate_location", "ssl_key_location"} & usable
        how = f"security_protocol {protocol}" + (f" with {mechanism}" if mechanism and protocol in WITH_SASL else "")
        yield from (f"{name} is not set, and {how} needs it" for name in sorted(needed - given))
        yield from (f"{name} is set, and {how} does not use it" for name in sorted(given - usable - needed))
