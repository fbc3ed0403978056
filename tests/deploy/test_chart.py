"""The Helm chart as Kubernetes would get it: rendered by real helms, held to real schemas. No cluster."""

import base64
import copy
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tests.support.certificates import Authority

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "holdfast"
HELMS = ("helm3", "helm4")  # under .tools/, put there by tests/run
KUBERNETES = ("1.29", "1.34", "1.37")
VALUES = tuple(sorted(path.name.removesuffix("-values.yaml") for path in CHART.glob("ci/*-values.yaml")))
RUNNING = tuple(name for name in VALUES if name != "library")  # those that render a pod
SIDECARS = tuple(name for name in VALUES if name.startswith("sidecar"))

Resource = dict[str, Any]


def helm(version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    binary = ROOT / ".tools" / version / "helm"
    assert binary.is_file(), f"{binary} is missing: run tests/run"
    return subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=30, check=False)


@cache
def rendered(version: str, values: str, kubernetes: str = "1.34", *extra: str) -> str:
    file = CHART / "ci" / f"{values}-values.yaml"
    done = helm(version, "template", "r", str(CHART), "-f", str(file), "--kube-version", kubernetes, *extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def resources(version: str, values: str, kubernetes: str = "1.34", *extra: str) -> list[Resource]:
    return [
        document for document in yaml.safe_load_all(rendered(version, values, kubernetes, *extra)) if document
    ]


def one(kind: str, values: str, *extra: str) -> Resource:
    (found,) = (item for item in resources("helm4", values, "1.34", *extra) if item["kind"] == kind)
    return found


def pod(values: str, *extra: str) -> Resource:
    spec: Resource = one("Deployment", values, *extra)["spec"]["template"]["spec"]
    return spec


def gateway(values: str, *extra: str) -> Resource:
    spec = pod(values, *extra)
    (found,) = (c for c in spec.get("initContainers", []) + spec["containers"] if c["name"] == "holdfast")
    container: Resource = found
    return container


def config_text(values: str, *extra: str) -> str:
    text: str = one("ConfigMap", values, *extra)["data"]["holdfast.yaml"]
    return text


def refusal(version: str, values: str, *extra: str) -> str:
    file = CHART / "ci" / f"{values}-values.yaml"
    done = helm(version, "template", "r", str(CHART), "-f", str(file), *extra)
    assert done.returncode != 0, done.stdout
    return done.stderr


# --- every set of values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", HELMS)
def test_helm_lints_the_chart_strictly_with_default_values(version: str) -> None:
    done = helm(version, "lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("version", HELMS)
def test_helm_lints_the_chart_strictly_with_each_set_of_values(version: str, values: str) -> None:
    done = helm(version, "lint", "--strict", str(CHART), "-f", str(CHART / "ci" / f"{values}-values.yaml"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kubernetes", KUBERNETES)
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("version", HELMS)
def test_every_resource_fits_the_schema_of_its_kubernetes_release(
    version: str, values: str, kubernetes: str
) -> None:
    documents = resources(version, values, kubernetes)
    assert documents
    for document in documents:
        # The release that was checked against: an unknown one falls back to an older schema in silence.
        assert kubernetes_validate.validate(document, kubernetes, strict=True) == kubernetes


def test_the_schema_check_would_notice_a_wrong_type_and_an_unknown_key() -> None:
    deployment = one("Deployment", "standalone")
    for wrong in ({"containerPort": "8080"}, {"containerport": 8080}):
        broken = copy.deepcopy(deployment)
        broken["spec"]["template"]["spec"]["containers"][0]["ports"][0].update(wrong)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(broken, "1.34", strict=True)


@pytest.mark.parametrize("values", VALUES)
def test_both_helms_render_the_same_resources(values: str) -> None:
    assert resources("helm3", values) == resources("helm4", values)


# --- the pod ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", RUNNING)
def test_the_container_runs_as_a_number_without_rights_or_a_writable_root(values: str) -> None:
    assert gateway(values)["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


@pytest.mark.parametrize("values", RUNNING)
def test_no_token_of_the_kubernetes_api_is_in_the_pod(values: str) -> None:
    assert pod(values)["automountServiceAccountToken"] is False
    accounts = [item for item in resources("helm4", values) if item["kind"] == "ServiceAccount"]
    assert all(account["automountServiceAccountToken"] is False for account in accounts)


@pytest.mark.parametrize("values", RUNNING)
def test_services_leave_no_variables_that_holdfast_would_refuse(values: str) -> None:
    """A Service named holdfast puts HOLDFAST_PORT into all pods around, and unknown HOLDFAST_* are errors."""
    assert pod(values)["enableServiceLinks"] is False


@pytest.mark.parametrize("values", RUNNING)
def test_the_only_writable_place_is_a_small_tmp_in_memory(values: str) -> None:
    volumes = {volume["name"]: volume for volume in pod(values)["volumes"]}
    writable = [mount for mount in gateway(values)["volumeMounts"] if not mount.get("readOnly")]
    assert [mount["mountPath"] for mount in writable] == ["/tmp"]
    assert volumes[writable[0]["name"]]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Mi"}


@pytest.mark.parametrize("values", RUNNING)
def test_the_probes_ask_the_admin_listener_of_the_configuration(values: str) -> None:
    container = gateway(values)
    port = int(yaml.safe_load(config_text(values))["admin"].removeprefix("0.0.0.0:"))
    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert asked == {
        "startup": {"path": "/readyz", "port": port},
        "liveness": {"path": "/livez", "port": port},
        "readiness": {"path": "/readyz", "port": port},
    }


def test_pods_may_listen_on_ipv6_too() -> None:
    """Ours: in a cluster with IPv6 alone neither the kubelet nor the Service reached 0.0.0.0."""
    config = yaml.safe_load(config_text("standalone", "--set", "ports.address=[::]"))
    assert (config["listen"], config["admin"]) == ("[::]:8080", "[::]:9090")


@pytest.mark.parametrize("values", RUNNING)
def test_the_service_reaches_the_client_listener_and_not_the_admin_one(values: str) -> None:
    (port,) = one("Service", values)["spec"]["ports"]
    assert yaml.safe_load(config_text(values))["listen"] == f"0.0.0.0:{port['targetPort']}"
    labels = one("Deployment", values)["spec"]["template"]["metadata"]["labels"]
    assert one("Service", values)["spec"]["selector"].items() <= labels.items()


def test_a_listener_that_speaks_tls_is_not_announced_as_plain_http() -> None:
    """Ours: a mesh goes by `appProtocol`, and people by the notes."""
    tls = ("--set", "config.tls.cert_file=/tls/tls.crt")
    (plain,), (safe,) = (one("Service", "standalone", *extra)["spec"]["ports"] for extra in ((), tls))
    assert (plain["appProtocol"], safe["appProtocol"]) == ("http", "https")
    values = str(CHART / "ci" / "standalone-values.yaml")
    told = helm("helm4", "install", "r", str(CHART), "-f", values, "--dry-run=client", *tls).stdout
    assert "https://r-holdfast.default.svc:80/mcp" in told


@pytest.mark.parametrize(
    ("values", "extra", "seconds"),
    [
        ("standalone", (), 5 + 25 + 5),
        ("standalone", ("--set", "config.drain=1h30m", "--set", "config.lame_duck=10"), 10 + 5400 + 5),
        ("standalone", ("--set", "terminationGracePeriodSeconds=90"), 90),
        ("many-upstreams", (), 3 + 91 + 5),  # 2500ms and 1m30.5s, rounded up
        ("sidecar", (), 5 + 10 + 0 + 25 + 5),
        ("sidecar-replicas", (), 10 + 45 + 0 + 25 + 5),
    ],
)
def test_a_pod_gets_the_time_that_stopping_takes(values: str, extra: tuple[str, ...], seconds: int) -> None:
    assert pod(values, *extra)["terminationGracePeriodSeconds"] == seconds


def test_a_changed_configuration_or_key_rolls_the_pods() -> None:
    def checksums(*extra: str) -> tuple[str, str]:
        found = one("Deployment", "chart-secret", *extra)["spec"]["template"]["metadata"]["annotations"]
        return found["checksum/config"], found["checksum/sealing"]

    config, sealing = checksums()
    other_config, same_sealing = checksums("--set", "config.upstreams.crm.settle=80ms")
    same_config, other_sealing = checksums("--set", f"sealing.keys[1]={'A' * 43}")
    assert (config, sealing) == (same_config, same_sealing)
    assert config != other_config
    assert sealing != other_sealing


@pytest.mark.parametrize("values", RUNNING)
def test_each_variable_of_the_configuration_is_given_to_the_container(values: str) -> None:
    given = [variable["name"] for variable in gateway(values).get("env", [])]
    assert len(given) == len(set(given))
    assert set(re.findall(r"\$\{(\w+)\}", config_text(values))) == set(given)


# --- as a sidecar -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", SIDECARS)
def test_beside_an_application_holdfast_is_a_native_sidecar(values: str) -> None:
    spec = pod(values)
    (sidecar,) = spec["initContainers"]
    (application,) = spec["containers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("holdfast", "Always")
    assert application["image"] == "crm-mcp:1.4.2"


def test_the_application_may_have_what_containers_usually_have() -> None:
    """Ours: what a legacy server needs is no reason to write a chart of one's own."""
    mount = {"name": "rules", "mountPath": "/etc/crm"}
    probe = {"tcpSocket": {"port": 9000}, "failureThreshold": 30}
    source = [{"configMapRef": {"name": "crm"}}]
    given = {"volumeMounts": [mount], "startupProbe": probe, "envFrom": source}
    extra = [
        part
        for name, value in given.items()
        for part in ("--set-json", f"sidecar.app.{name}={json.dumps(value)}")
    ]
    deployment = one("Deployment", "sidecar", *extra)
    kubernetes_validate.validate(deployment, "1.34", strict=True)
    (application,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {name: application[name] for name in given} == given


@pytest.mark.parametrize(
    ("values", "url"),
    [("sidecar", "http://127.0.0.1:9000/mcp"), ("sidecar-replicas", "http://127.0.0.1:3000/")],
)
def test_the_application_beside_it_is_the_upstream_without_being_named(values: str, url: str) -> None:
    assert yaml.safe_load(config_text(values))["upstreams"] == {"app": {"url": url}}


@pytest.mark.parametrize(("kubernetes", "sleeps"), [("1.29", False), ("1.30", True), ("1.37", True)])
def test_the_application_sleeps_before_it_stops_where_kubernetes_can(
    kubernetes: str, *, sleeps: bool
) -> None:
    (deployment,) = (
        item for item in resources("helm4", "sidecar", kubernetes) if item["kind"] == "Deployment"
    )
    (application,) = deployment["spec"]["template"]["spec"]["containers"]
    assert ("lifecycle" in application) is sleeps


# --- keys and replicas --------------------------------------------------------------------------------------


def test_keys_given_as_values_are_in_a_secret_and_nowhere_else() -> None:
    text = rendered("helm4", "chart-secret")
    keys = yaml.safe_load((CHART / "ci" / "chart-secret-values.yaml").read_text())["sealing"]["keys"]
    data = one("Secret", "chart-secret")["data"]
    assert [base64.b64decode(data[name]).decode() for name in ("seal-key", "seal-key-2")] == keys
    assert not any(key in text for key in keys)


def test_entries_of_an_existing_secret_form_the_key_ring_in_their_order() -> None:
    sources = {v["name"]: v["valueFrom"]["secretKeyRef"] for v in gateway("existing-secret")["env"]}
    ring = yaml.safe_load(config_text("existing-secret"))["sealing"]
    assert ring == {"keys": ["${HOLDFAST_SEAL_KEY}", "${HOLDFAST_SEAL_KEY_2}"], "ttl": "20m"}
    assert sources == {
        "HOLDFAST_SEAL_KEY": {"name": "holdfast-sealing", "key": "key-2026-11"},
        "HOLDFAST_SEAL_KEY_2": {"name": "holdfast-sealing", "key": "key-2026-08"},
    }
    assert "Secret" not in {item["kind"] for item in resources("helm4", "existing-secret")}


@pytest.mark.parametrize(
    ("values", "affinity"),
    [("standalone", "None"), ("existing-secret", "ClientIP"), ("autoscaled", "ClientIP")],
)
def test_with_replicas_a_client_stays_with_the_one_that_holds_its_question(
    values: str, affinity: str
) -> None:
    assert one("Service", values)["spec"]["sessionAffinity"] == affinity


def test_the_autoscaler_decides_about_replicas_alone() -> None:
    assert "replicas" not in one("Deployment", "autoscaled")["spec"]
    assert one("HorizontalPodAutoscaler", "autoscaled")["spec"]["scaleTargetRef"]["name"] == "r-holdfast"


@pytest.mark.parametrize(
    ("values", "budget"), [("autoscaled", {"maxUnavailable": "25%"}), ("keys-file", {"minAvailable": 1})]
)
def test_a_disruption_budget_states_one_bound(values: str, budget: dict[str, object]) -> None:
    spec = one("PodDisruptionBudget", values)["spec"]
    assert {name: bound for name, bound in spec.items() if name != "selector"} == budget


NUMBERS = {
    "fullnameOverride": "123",
    "nameOverride": "0777",
    "serviceAccount.name": "0x1f",
    "priorityClassName": "1.5",
    "sealing.existingSecret": "true",
    "sealing.existingSecretKeys[0]": "0123",
}


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize("release", ["123", "true"])
def test_what_is_called_like_a_number_stays_text(version: str, release: str) -> None:
    """Ours: Kubernetes allows such names, and refuses the numbers that YAML makes of them."""
    values = str(CHART / "ci" / "existing-secret-values.yaml")
    every = "--set-string=" + ",".join(f"{key}={value}" for key, value in NUMBERS.items())
    for extra in ([], [every]):
        done = helm(version, "template", release, str(CHART), "-f", values, *extra)
        assert done.returncode == 0, done.stderr
        for document in yaml.safe_load_all(done.stdout):
            assert kubernetes_validate.validate(document, "1.34", strict=True) == "1.34"


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize(
    "section",
    [
        *("image", "ports", "sealing", "autoscaling", "podDisruptionBudget", "service", "serviceAccount"),
        *("probes", "probes.startup", "service.port", "sidecar"),
    ],
)
def test_a_section_that_was_emptied_is_named(version: str, section: str) -> None:
    """Ours: `probes:` with nothing below it takes the defaults away; helm would speak of a nil pointer."""
    told = refusal(version, "standalone", "--set", f"{section}=null")
    assert section.rpartition(".")[2] in told
    assert "values don't meet the specifications of the schema" in told


# --- what it refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize(
    ("values", "extra", "reason"),
    [
        ("standalone", ("replicaCount=2",), "more than one replica needs a sealing key"),
        ("standalone", ("autoscaling.enabled=true",), "more than one replica needs a sealing key"),
        ("sidecar", ("replicaCount=2",), "more than one replica needs a sealing key"),
        ("standalone", ("config.upstreams=null",), "config.upstreams is empty"),
        ("sidecar", ("sidecar.app.image=",), "sidecar.app.image"),
        ("sidecar", ("sidecar.app.port=8080",), "share one pod"),
        ("standalone", ("ports.admin=8080",), "ports.http and ports.admin are the same"),
        ("standalone", ("config.listen=0.0.0.0:80",), "config.listen is set by the chart"),
        ("standalone", ("config.sealing.keys[0]=topsecret",), "config.sealing.keys would put"),
        ("chart-secret", ("sealing.existingSecret=x",), "choose one"),
        ("existing-secret", ("sealing.existingSecretKeys=null",), "existingSecretKeys"),
        ("standalone", ("terminationGracePeriodSeconds=30",), "stopping takes up to 35 s"),
        ("sidecar", ("terminationGracePeriodSeconds=35",), "stopping takes up to 45 s"),
        ("standalone", ("config.drain=soon",), "drain"),
        ("standalone", ("replicas=2",), "replicas"),
        ("standalone", ("mode=daemonset",), "mode"),
        ("standalone", ("sealing.keys[0]=short",), "keys"),
    ],
)
def test_the_chart_refuses_with_the_reason(
    version: str, values: str, extra: tuple[str, ...], reason: str
) -> None:
    assert reason in refusal(version, values, *(part for pair in extra for part in ("--set", pair)))


# --- together with Holdfast ---------------------------------------------------------------------------------


@pytest.mark.parametrize("values", VALUES)
def test_holdfast_accepts_the_configuration_that_the_chart_renders(values: str, tmp_path: Path) -> None:
    text = config_text(values)
    keys = tmp_path / "keys"
    keys.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n")
    file = tmp_path / "holdfast.yaml"
    Authority(tmp_path).client("tls")
    file.write_text(text.replace("/var/run/holdfast/keys", str(keys)).replace("/var/run/tls", str(tmp_path)))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    for place, name in enumerate(re.findall(r"\$\{(\w+)\}", text)):
        is_key = name.startswith("HOLDFAST_SEAL_KEY")
        variables[name] = (
            base64.urlsafe_b64encode(bytes([place]) * 16 + bytes(range(16))).decode() if is_key else "9100"
        )
    command = [sys.executable, "-m", "gateway", "check-config", str(file)]
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_is_for_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
