"""The chart inside another one: their pod, our sidecar, by the three templates that values.yaml promises."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "holdfast"

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: crm
spec:
  selector:
    matchLabels: {app: crm}
  template:
    metadata:
      labels: {app: crm}
      annotations:
        {{- include "holdfast.podAnnotations" .Subcharts.holdfast | nindent 8 }}
    spec:
      enableServiceLinks: false
      initContainers:
        {{- include "holdfast.sidecar" .Subcharts.holdfast | nindent 8 }}
      containers:
        - name: crm
          image: crm-mcp:1.4.2
      volumes:
        {{- include "holdfast.volumes" .Subcharts.holdfast | nindent 8 }}
"""


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    chart = tmp_path / "crm"
    (chart / "templates").mkdir(parents=True)
    (chart / "templates" / "deployment.yaml").write_text(DEPLOYMENT)
    dependency = {"name": "holdfast", "version": "*", "condition": "holdfast.enabled"}
    about = {"apiVersion": "v2", "name": "crm", "version": "1.0.0", "dependencies": [dependency]}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    values = yaml.safe_load((CHART / "ci" / "library-values.yaml").read_text())
    (chart / "values.yaml").write_text(yaml.safe_dump({"holdfast": {"enabled": True, **values}}))
    shutil.copytree(CHART, chart / "charts" / "holdfast")
    return chart


def render(version: str, chart: Path) -> dict[str, dict[str, Any]]:
    binary = ROOT / ".tools" / version / "helm"
    assert binary.is_file(), f"{binary} is missing: run tests/run"
    command = [str(binary), "template", "r", str(chart), "--kube-version", "1.34"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    documents = [document for document in yaml.safe_load_all(done.stdout) if document]
    for document in documents:
        kubernetes_validate.validate(document, "1.34", strict=True)
    return {document["kind"]: document for document in documents}


@pytest.mark.parametrize("version", ["helm3", "helm4"])
def test_another_chart_puts_holdfast_beside_its_own_server(version: str, parent: Path) -> None:
    found = render(version, parent)
    # Nothing of ours but what the container needs: the pod and the Service are theirs.
    assert found.keys() == {"ConfigMap", "Secret", "Deployment"}
    template = found["Deployment"]["spec"]["template"]
    (sidecar,) = template["spec"]["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["securityContext"]["runAsUser"] == 65532
    assert sidecar["securityContext"]["readOnlyRootFilesystem"] is True
    assert sidecar["image"] == "holdfast:0.1.0"
    assert template["metadata"]["annotations"].keys() == {"checksum/config", "checksum/sealing"}


@pytest.mark.parametrize("version", ["helm3", "helm4"])
def test_the_foreign_pod_refers_to_the_configuration_and_the_keys_of_this_release(
    version: str, parent: Path
) -> None:
    found = render(version, parent)
    spec = found["Deployment"]["spec"]["template"]["spec"]
    config, temporary = spec["volumes"]
    assert config["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert temporary["emptyDir"]["medium"] == "Memory"
    (variable,) = spec["initContainers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"]["name"] == found["Secret"]["metadata"]["name"]
    assert variable["valueFrom"]["secretKeyRef"]["key"] in found["Secret"]["data"]
    mounted = {mount["name"] for mount in spec["initContainers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["volumes"]}
