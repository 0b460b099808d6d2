"""Encryption and log-in: open connections are refused, what is set is used, and secrets are shown nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from pydantic import ValidationError

from tidegate_kafka.clients.client_config import admin_config, membership_config, producer_config, reader_config
from tidegate_kafka.clients.security import SECURED, KafkaSecurity
from tidegate_kafka.clients.settings import OURS, KafkaSettings

CANARY = "canary-in-the-shaft"
SCRAM: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_username": "tide",
    "sasl_password": CANARY,
}
OAUTH: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://127.0.0.1:1/token",
    "sasl_oauthbearer_client_id": "tide",
    "sasl_oauthbearer_client_secret": CANARY,
    "sasl_oauthbearer_scope": "kafka",
}


def _refusal(given: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        KafkaSettings.model_validate(given)
    return "; ".join(error["msg"] for error in caught.value.errors())


@pytest.mark.parametrize("protocol", [None, "PLAINTEXT", "SASL_PLAINTEXT"])
def test_given_an_open_protocol_then_it_is_refused_with_both_ways_out(protocol: str | None) -> None:
    given = (SCRAM | {"security_protocol": protocol}) if protocol == "SASL_PLAINTEXT" else {}
    said = _refusal(given | ({"security_protocol": protocol} if protocol else {}))
    assert "TIDEGATE_KAFKA__SECURITY_PROTOCOL" in said
    assert "TIDEGATE_KAFKA__ALLOW_PLAINTEXT" in said
    KafkaSettings.model_validate(given | {"allow_plaintext": True})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"security_protocol": "SASL_SSL"}, "sasl_mechanism is not set", id="no mechanism"),
        pytest.param(SCRAM | {"sasl_password": None}, "sasl_password is not set", id="no password"),
        pytest.param(SCRAM | {"security_protocol": "SSL"}, "sasl_mechanism is set, and security_pro", id="no SASL"),
        pytest.param(OAUTH | {"sasl_username": "u"}, "sasl_username is set", id="OAUTHBEARER knows no user"),
        pytest.param(OAUTH | {"sasl_oauthbearer_client_secret": None}, "client_secret is not set", id="no client"),
        pytest.param(OAUTH | {"sasl_oauthbearer_token_endpoint_url": "http://x"}, "should match", id="open tokens"),
        pytest.param(
            {"allow_plaintext": True, "ssl_ca_location": __file__}, "ssl_ca_location is set", id="CA without TLS"
        ),
        pytest.param(
            {"security_protocol": "SSL", "ssl_key_location": __file__}, "ssl_certificate_location is not", id="half"
        ),
        pytest.param({"security_protocol": "SSL", "ssl_ca_location": "/nowhere.pem"}, "not point to a file", id="gone"),
        pytest.param({"security_protocol": "TLS"}, "'SASL_SSL'", id="no protocol"),
        pytest.param(SCRAM | {"sasl_mechanism": "GSSAPI"}, "'SCRAM-SHA-512'", id="not built in"),
        pytest.param(
            SCRAM | {"extra": {"ssl.endpoint.identification.algorithm": "none"}}, "its own setting", id="any host"
        ),
        pytest.param(
            SCRAM | {"extra": {"enable.ssl.certificate.verification": "false"}}, "its own setting", id="unverified"
        ),
        pytest.param(SCRAM | {"extra": {"security.protocol": "PLAINTEXT"}}, "its own setting", id="around it"),
        pytest.param(SCRAM | {"extra": {"ssl.keystore.password": "x"}}, "hold no secrets", id="shown"),
    ],
)
def test_given_settings_that_contradict_then_the_refusal_names_the_setting_and_no_secret(
    given: dict[str, Any], said: str
) -> None:
    refusal = _refusal({name: value for name, value in given.items() if value is not None})
    assert said in refusal
    assert CANARY not in refusal


@pytest.mark.parametrize("given", [SCRAM, OAUTH, {"security_protocol": "SSL"}])
def test_given_tls_then_every_client_verifies_the_host_and_the_client_library_takes_it(given: dict[str, Any]) -> None:
    settings = KafkaSettings.model_validate({"bootstrap_servers": "127.0.0.1:1"} | given)
    configs = [
        admin_config(settings),
        membership_config(settings),
        reader_config(settings),
        producer_config(settings, guarded=True),
        producer_config(settings, guarded=False),
    ]
    for config in configs:
        assert config["security.protocol"] == given["security_protocol"]
        assert config["ssl.endpoint.identification.algorithm"] == "https"
        assert config["enable.ssl.certificate.verification"] is True
        assert (CANARY in config.values()) == (given["security_protocol"] == "SASL_SSL")
    Producer({**producer_config(settings, guarded=False), "log_level": 0})


def test_given_a_certificate_then_its_files_and_password_are_the_clients(tmp_path: Path) -> None:
    file = tmp_path / "any.pem"
    file.write_text("no certificate")
    names = ("ssl_ca_location", "ssl_certificate_location", "ssl_key_location")
    given = dict.fromkeys(names, file) | {"ssl_key_password": CANARY}
    settings = KafkaSettings.model_validate({"security_protocol": "SSL"} | given)
    config = producer_config(settings, guarded=False)
    assert {config[name.replace("_", ".")] for name in names} == {str(file)}
    assert config["ssl.key.password"] == CANARY
    with pytest.raises(KafkaException, match=r"ssl\.ca.location failed"):
        Producer(config)


@pytest.mark.parametrize("given", [SCRAM, OAUTH])
def test_given_secrets_then_no_text_of_the_settings_shows_them(given: dict[str, Any]) -> None:
    settings = KafkaSettings.model_validate(given)
    assert CANARY in str(settings.client_properties())
    for text in (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())):
        assert CANARY not in text


def test_given_every_security_setting_then_extra_may_not_set_its_property() -> None:
    mapped = {name.replace("_", ".") for name in KafkaSecurity.model_fields} - {"allow.plaintext"}
    assert mapped <= SECURED
    assert not SECURED & OURS
