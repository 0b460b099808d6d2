"""How the way to the brokers is secured, in Kafka's own words: the same for each client that this process makes.

Open connections are refused unless somebody has said that they are wanted: whoever can read them sees payloads and passwords,
and whoever can write into them sends requests in anybody's name.
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
"""Client properties that the settings below stand for: `extra` may not set them."""
SECRET_WORDS: Final = ("key.pem", "oauthbearer.config", "passphrase", "password", "secret")
"""What the names of the client's other secrets have in them; `extra` is shown as it is, and so may hold none."""


class KafkaSecurity(BaseModel):
    """Encryption, and who we say that we are. Names are those of Kafka's clients, with `_` for `.`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT",
        description="How to reach the brokers. The default is Kafka's own, and refused without `allow_plaintext`.",
    )
    allow_plaintext: bool = Field(
        default=False,
        description="Whether a protocol without encryption will do: on one host, or in a network of your own. `tidegate dev` sets it.",
    )
    ssl_ca_location: FilePath | None = Field(
        default=None, description="PEM file of the authorities that sign brokers' certificates; unset: the system's."
    )
    ssl_certificate_location: FilePath | None = Field(
        default=None, description="PEM file of our own certificate, where the brokers ask for one (mTLS)."
    )
    ssl_key_location: FilePath | None = Field(default=None, description="PEM file of its private key.")
    ssl_key_password: SecretStr | None = Field(default=None, description="Of the private key, where it has one.")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        default=None, description="How to log in. SCRAM never sends the password; PLAIN does, within the encryption."
    )
    sasl_username: str | None = Field(default=None, min_length=1, description="For PLAIN and SCRAM.")
    sasl_password: SecretStr | None = Field(default=None, min_length=1, description="For PLAIN and SCRAM.")
    sasl_oauthbearer_token_endpoint_url: str | None = Field(
        default=None, pattern=r"^https://", description="Where OAUTHBEARER gets its tokens (OIDC client credentials)."
    )
    sasl_oauthbearer_client_id: str | None = Field(default=None, min_length=1, description="For OAUTHBEARER.")
    sasl_oauthbearer_client_secret: SecretStr | None = Field(default=None, min_length=1, description="For OAUTHBEARER.")
    sasl_oauthbearer_scope: str | None = Field(
        default=None, min_length=1, description="For OAUTHBEARER, where its endpoint wants one."
    )

    @model_validator(mode="after")
    def _is_secured_or_allowed_not_to_be(self) -> Self:
        if self.security_protocol in OPEN and not self.allow_plaintext:
            raise ValueError(
                f"security_protocol {self.security_protocol} sends everything in the open: set it to SASL_SSL or SSL "
                "(TIDEGATE_KAFKA__SECURITY_PROTOCOL), or, where nobody else can listen, allow_plaintext to true "
                "(TIDEGATE_KAFKA__ALLOW_PLAINTEXT)"
            )
        if wrong := next(self._contradictions(), None):
            raise ValueError(wrong)
        return self

    def client_properties(self) -> dict[str, str | bool]:
        """Returns the properties of librdkafka that these settings stand for; they hold the secrets as they are."""
        properties: dict[str, str | bool] = {"security.protocol": self.security_protocol}
        if "SSL" in self.security_protocol:
            properties |= {
                # Both are the client's defaults: a certificate of somebody else's host opens nothing.
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
        """What was set and would not be used, or is needed and was not set."""
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
