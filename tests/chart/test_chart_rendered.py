"""The chart as Helm renders it: what a cluster would get is safe, complete and consistent in itself."""

import base64
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

Resources = list[dict[str, Any]]
Render = Callable[[dict[str, Any]], Resources]
Helm = Callable[..., subprocess.CompletedProcess[str]]

REVISION_LABEL_ROOM = 63 - len("-") - 10

DEFAULTS: dict[str, Any] = {}
FULL: dict[str, Any] = {
    "image": {"registry": "registry.example:5000", "digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry-login"}],
    "kafka": {
        "bootstrapServers": "broker-0:9092,broker-1:9092",
        "groupProtocol": "consumer",
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "SCRAM-SHA-512",
        "saslUsername": "tide",
        "sslCaLocation": "/etc/kafka-ca/ca.pem",
    },
    "dynamodb": {"region": "eu-central-1", "endpointUrl": "http://dynamodb-local:8000", "tablePrefix": "tide"},
    "gate": {"existingSecret": "our-gate", "secretKey": "token-key", "url": "https://tide.example"},
    "settings": {"TIDEGATE_LOG__LEVEL": "debug", "TIDEGATE_API__PORT": "8080"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/tide"}},
    "node": {
        "replicas": 5,
        "podAnnotations": {"team": "flow"},
        "nodeSelector": {"pool": "spark"},
        "tolerations": [{"key": "spark", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    },
    "api": {"service": {"type": "LoadBalancer", "port": 8443}, "nodeSelector": {"pool": "web"}},
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraEnvFrom": [{"secretRef": {"name": "kafka-login"}}],
    "extraVolumes": [{"name": "certificates", "secret": {"secretName": "kafka-ca"}}],
    "extraVolumeMounts": [{"name": "certificates", "mountPath": "/etc/kafka-ca"}],
}
BOTH = pytest.mark.parametrize("values", [pytest.param(DEFAULTS, id="defaults"), pytest.param(FULL, id="full")])


def _one(resources: Resources, kind: str, name: str) -> dict[str, Any]:
    (found,) = [item for item in resources if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return found


def _workloads(resources: Resources) -> list[dict[str, Any]]:
    return [item for item in resources if item["kind"] in {"Deployment", "Job", "StatefulSet"}]


def _pods(resources: Resources) -> Iterator[dict[str, Any]]:
    yield from (item["spec"]["template"] for item in _workloads(resources))


def _environment(resources: Resources) -> dict[str, str]:
    data: dict[str, str] = _one(resources, "ConfigMap", "tide-tidegate")["data"]
    return data


def test_given_the_chart_then_helm_lints_it_strictly(helm: Helm) -> None:
    done = helm("lint", "--strict", str(Path(__file__).parents[2] / "helm" / "tidegate"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_given_an_unknown_value_then_helm_refuses_to_render(helm: Helm) -> None:
    chart = str(Path(__file__).parents[2] / "helm" / "tidegate")
    done = helm("template", "tide", chart, "--set", "node.replica=3")
    assert done.returncode != 0
    assert "replica" in done.stderr


@BOTH
def test_given_values_then_each_resource_has_one_name_and_the_common_labels(
    values: dict[str, Any], render: Render
) -> None:
    resources = render(values)
    names = [(item["kind"], item["metadata"]["name"]) for item in resources]
    assert len(names) == len(set(names))
    for item in resources:
        assert item["metadata"]["labels"]["app.kubernetes.io/instance"] == "tide"
        assert len(item["metadata"]["name"]) <= 63


@BOTH
def test_given_values_then_every_container_runs_with_the_least_rights(values: dict[str, Any], render: Render) -> None:
    for pod in _pods(render(values)):
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["enableServiceLinks"] is False
        assert pod["spec"]["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"]
            assert container["resources"]["limits"]["memory"]


@BOTH
def test_given_values_then_selectors_find_their_own_pods_and_no_others(values: dict[str, Any], render: Render) -> None:
    resources = render(values)
    labels = [pod["metadata"]["labels"] for pod in _pods(resources)]
    selectors = [item["spec"]["selector"] for item in resources if item["kind"] == "Service"]
    selectors += [
        item["spec"]["selector"]["matchLabels"] for item in resources if item["kind"] == "PodDisruptionBudget"
    ]
    selectors += [item["spec"]["selector"]["matchLabels"] for item in _workloads(resources) if item["kind"] != "Job"]
    assert len(selectors) == 6
    for selector in selectors:
        assert sum(selector.items() <= pod.items() for pod in labels) == 1


@BOTH
def test_given_values_then_named_ports_mounts_and_references_exist(values: dict[str, Any], render: Render) -> None:
    resources = render(values)
    made = {(item["kind"], item["metadata"]["name"]) for item in resources}
    for pod in _pods(resources):
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        assert ("ServiceAccount", pod["spec"]["serviceAccountName"]) in made
        for container in pod["spec"]["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            ports = {port["name"] for port in container.get("ports", [])}
            probes = [container[key] for key in container if key.endswith("Probe")]
            assert {probe["httpGet"]["port"] for probe in probes} <= ports
            maps = [
                source["configMapRef"]["name"] for source in container.get("envFrom", []) if "configMapRef" in source
            ]
            assert {("ConfigMap", name) for name in maps} <= made


def test_given_the_node_then_it_is_probed_drained_and_kept_apart(render: Render) -> None:
    node = _one(render(DEFAULTS), "StatefulSet", "tide-tidegate-node")
    pod = node["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["node"]
    assert container["ports"] == [{"name": "health", "containerPort": 8081}]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    # Not /readyz: a position that is gone would hold up roll-outs and drains of machines for good.
    assert container["readinessProbe"]["httpGet"]["path"] == "/rolloutz"
    assert pod["terminationGracePeriodSeconds"] == 480 + 60 + 60
    # One that does not answer is gone within a minute.
    assert {container[f"{probe}Probe"]["terminationGracePeriodSeconds"] for probe in ("liveness", "startup")} == {60}
    assert _one(render(DEFAULTS), "ConfigMap", "tide-tidegate")["data"]["TIDEGATE_LAUNCHER__END_WAIT_S"] == "480"
    assert node["spec"]["podManagementPolicy"] == "Parallel"


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [({}, 120), ({"TIDEGATE_STARTUP_WAIT_S": "5"}, 120), ({"TIDEGATE_STARTUP_WAIT_S": "300"}, 360)],
)
def test_given_a_patience_with_bricks_then_the_start_probe_waits_a_minute_longer(
    render: Render, settings: dict[str, str], seconds: int
) -> None:
    """Found in review: a node that was to wait five minutes for its brokers was killed after two."""
    node = _one(render({"settings": settings}), "StatefulSet", "tide-tidegate-node")
    (container,) = node["spec"]["template"]["spec"]["containers"]
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == seconds


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ({"node": {"programsEndSeconds": 0}}, 120),
        ({"settings": {"TIDEGATE_LAUNCHER__CANCEL_GRACE_S": "90.5"}}, 480 + 91 + 60),
        ({"settings": {"TIDEGATE_LAUNCHER__END_WAIT_S": "3600"}}, 3600 + 120),
    ],
)
def test_given_settings_of_ones_own_then_the_grace_period_holds_all_that_an_end_takes(
    values: dict[str, Any], seconds: int, render: Render
) -> None:
    node = _one(render({**DEFAULTS, **values}), "StatefulSet", "tide-tidegate-node")
    assert node["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds


@pytest.mark.parametrize(("settings", "seconds"), [({}, 60), ({"TIDEGATE_API__DRAIN_S": "300"}, 345)])
def test_given_a_drain_of_ones_own_then_the_apis_grace_period_holds_it(
    settings: dict[str, str], seconds: int, render: Render
) -> None:
    api = _one(render({"settings": settings}), "Deployment", "tide-tidegate-api")
    assert api["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds


def test_given_ports_among_the_settings_then_probes_ask_where_the_processes_listen(render: Render) -> None:
    """They win over the chart's own: a node would be killed as often as it began, and an API have no requests."""
    settings = {"TIDEGATE_API__PORT": "9000", "TIDEGATE_HEALTH__PORT": "9001"}
    pods = [pod for pod in _workloads(render({"settings": settings})) if pod["kind"] != "Job"]
    ports = [container["ports"] for pod in pods for container in pod["spec"]["template"]["spec"]["containers"]]
    assert ports == [[{"name": "http", "containerPort": 9000}], [{"name": "health", "containerPort": 9001}]]


def test_given_programs_that_shuffle_then_the_nodes_have_the_room_for_it_that_the_values_say(render: Render) -> None:
    """Found in review: 256 MiB of /tmp, and no value for it. And again: they shuffle in their run's folder, of which 1 GiB was left for that
    beside what is kept of others, and a larger /tmp was of no use.
    """

    def room(values: dict[str, Any], kind: str, name: str) -> str:
        volumes = _one(render(values), kind, f"tide-tidegate-{name}")["spec"]["template"]["spec"]["volumes"]
        limit: str = next(volume["emptyDir"]["sizeLimit"] for volume in volumes if volume["name"] == "tmp")
        return limit

    assert room(DEFAULTS, "StatefulSet", "node") == "2Gi"
    assert room({"node": {"tmpSizeLimit": "50Gi"}}, "StatefulSet", "node") == "50Gi"
    assert room({"node": {"tmpSizeLimit": "50Gi"}}, "Deployment", "api") == "256Mi"


def test_given_pods_that_are_not_ready_then_they_keep_no_machine_from_being_drained(render: Render) -> None:
    budgets = [item["spec"] for item in render(DEFAULTS) if item["kind"] == "PodDisruptionBudget"]
    assert [budget["unhealthyPodEvictionPolicy"] for budget in budgets] == ["AlwaysAllow"] * 2


def test_given_the_api_then_programs_always_find_one(render: Render) -> None:
    resources = render(DEFAULTS)
    api = _one(resources, "Deployment", "tide-tidegate-api")
    (container,) = api["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["api"]
    assert container["ports"] == [{"name": "http", "containerPort": 8080}]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert api["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    service = _one(resources, "Service", "tide-tidegate-api")
    assert (
        _environment(resources)["TIDEGATE_GATE__URL"]
        == f"http://tide-tidegate-api:{service['spec']['ports'][0]['port']}"
    )


def test_given_an_api_that_ends_then_requests_have_been_led_elsewhere_before_it_takes_no_more(render: Render) -> None:
    """Found in review: the endpoint goes while the process ends, and until it had gone requests met a port on which nobody listened."""
    pod = _one(render(DEFAULTS), "Deployment", "tide-tidegate-api")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]
    assert pod["terminationGracePeriodSeconds"] > 5 + 15


def test_given_an_installation_then_init_runs_before_it_without_the_releases_own_resources(render: Render) -> None:
    resources = render(DEFAULTS)
    job = _one(resources, "Job", "tide-tidegate-init")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["init"]
    account = _one(resources, "ServiceAccount", pod["serviceAccountName"])
    ((source,),) = [each.values() for each in container["envFrom"]]
    settings = _one(resources, "ConfigMap", source["name"])
    for needed in (account, settings):
        assert needed["metadata"]["annotations"]["helm.sh/hook"] == job["metadata"]["annotations"]["helm.sh/hook"]
        weights = [int(item["metadata"]["annotations"]["helm.sh/hook-weight"]) for item in (needed, job)]
        assert weights[0] < weights[1]
    given = settings["data"]
    expected = _environment(resources)
    assert given == {name: value for name, value in expected.items() if name != "TIDEGATE_GATE__SECRET_FILE"}


def test_given_settings_in_a_secret_then_they_win_in_the_init_job_as_they_do_in_the_nodes(render: Render) -> None:
    """Found in review: the job prepared tables and topics under the chart's defaults, and the nodes asked for others."""
    for pod in _pods(render(FULL)):
        (container,) = pod["spec"]["containers"]
        assert [next(iter(source)) for source in container["envFrom"]] == ["configMapRef", "secretRef"]
        assert container["env"] == FULL["extraEnv"]


def test_given_a_place_for_the_init_job_then_it_runs_there(render: Render) -> None:
    place = {
        "nodeSelector": {"pool": "web"},
        "tolerations": [{"key": "web", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    }
    job = _one(render({"init": place}), "Job", "tide-tidegate-init")
    pod = job["spec"]["template"]["spec"]
    assert {name: pod[name] for name in place} == place


def test_given_all_values_then_they_arrive_in_the_environment(render: Render) -> None:
    environment = _environment(render(FULL))
    assert environment["TIDEGATE_KAFKA__BOOTSTRAP_SERVERS"] == "broker-0:9092,broker-1:9092"
    assert environment["TIDEGATE_KAFKA__GROUP_PROTOCOL"] == "consumer"
    assert environment["TIDEGATE_KAFKA__SECURITY_PROTOCOL"] == "SASL_SSL"
    assert environment["TIDEGATE_KAFKA__SASL_MECHANISM"] == "SCRAM-SHA-512"
    assert environment["TIDEGATE_KAFKA__SASL_USERNAME"] == "tide"
    assert environment["TIDEGATE_KAFKA__SSL_CA_LOCATION"] == "/etc/kafka-ca/ca.pem"
    assert environment["TIDEGATE_DYNAMODB__ENDPOINT_URL"] == "http://dynamodb-local:8000"
    assert environment["TIDEGATE_DYNAMODB__TABLE_PREFIX"] == "tide"
    # On EKS the webhook of roles sets the first one anew, to the cluster's region: the tables would be made, and looked for, there.
    assert environment["AWS_DEFAULT_REGION"] == environment["TIDEGATE_DYNAMODB__REGION"] == "eu-central-1"
    assert environment["TIDEGATE_GATE__URL"] == "https://tide.example"
    assert environment["TIDEGATE_LOG__LEVEL"] == "debug"


def test_given_nothing_then_no_process_accepts_an_open_connection(render: Render) -> None:
    environment = _environment(render(DEFAULTS))
    assert environment["TIDEGATE_KAFKA__ALLOW_PLAINTEXT"] == "false"
    assert not {name for name in environment if name.startswith(("TIDEGATE_KAFKA__SASL", "TIDEGATE_KAFKA__SSL"))}


def test_given_volumes_then_every_pod_mounts_them(render: Render) -> None:
    """The init job talks to the brokers as well, and needs their authorities."""
    for pod in _pods(render(FULL)):
        assert "certificates" in {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in pod["spec"]["containers"]:
            assert "certificates" in {mount["name"] for mount in container["volumeMounts"]}


def test_given_no_endpoint_then_the_regions_own_is_used(render: Render) -> None:
    assert "TIDEGATE_DYNAMODB__ENDPOINT_URL" not in _environment(render(DEFAULTS))


def test_given_a_digest_then_it_wins_over_the_tag(render: Render) -> None:
    images = {container["image"] for pod in _pods(render(FULL)) for container in pod["spec"]["containers"]}
    assert images == {"registry.example:5000/tidegate@sha256:" + "0" * 64}


def test_given_a_secret_of_the_users_then_the_chart_makes_none(render: Render) -> None:
    resources = render(FULL)
    assert [item for item in resources if item["kind"] == "Secret"] == []
    node = _one(resources, "StatefulSet", "tide-tidegate-node")["spec"]["template"]["spec"]
    gate = next(volume["secret"] for volume in node["volumes"] if volume["name"] == "gate")
    assert (gate["secretName"], gate["items"]) == ("our-gate", [{"key": "token-key", "path": "secret"}])


def test_given_no_secret_then_the_chart_makes_a_long_one_that_stays(render: Render) -> None:
    secret = _one(render(DEFAULTS), "Secret", "tide-tidegate-gate")
    assert len(base64.b64decode(secret["data"]["gate-secret"])) == 48
    assert secret["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_given_changed_settings_then_pods_are_replaced_and_else_not(render: Render) -> None:
    def checksum(values: dict[str, Any]) -> str:
        pod = _one(render(values), "StatefulSet", "tide-tidegate-node")["spec"]["template"]
        found: str = pod["metadata"]["annotations"]["checksum/config"]
        return found

    assert checksum(DEFAULTS) == checksum(DEFAULTS)
    assert checksum(DEFAULTS) != checksum({"kafka": {"bootstrapServers": "other:9092"}})


def test_given_a_long_release_name_then_names_still_fit(helm: Helm) -> None:
    chart = str(Path(__file__).parents[2] / "helm" / "tidegate")
    done = helm("template", "a" * 53, chart, "--set", f"nameOverride={'b' * 63}")
    assert done.returncode == 0, done.stderr
    names = [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("  name: ")]
    assert names
    assert max(map(len, names)) <= 63
    (stateful_set,) = (item for item in yaml.safe_load_all(done.stdout) if item and item["kind"] == "StatefulSet")
    # Its pods have a label with this name, a dash and a revision of up to 10 digits.
    assert len(stateful_set["metadata"]["name"]) <= REVISION_LABEL_ROOM


def test_given_the_longest_full_name_then_the_pods_of_the_nodes_can_be_made(render: Render) -> None:
    _one(render({"fullnameOverride": "a" * 47}), "StatefulSet", "a" * 47 + "-node")
    assert len("a" * 47 + "-node") <= REVISION_LABEL_ROOM
