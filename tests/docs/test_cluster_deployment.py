"""Clusters as the files in `deploy/kubernetes` and docs/cluster.md start them: valid, closed, and charged once."""

import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gcon.cli.app import command

yaml = pytest.importorskip("yaml")
psutil = pytest.importorskip("psutil")
distributed = pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
QUIET = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]


def documents():
    """All that is sent to Kubernetes, by file and kind."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if "kind" in document:
                yield path.name, document


def pods():
    found = {
        name: document["spec"]["template"]
        for name, document in documents()
        if document["kind"] in ("Deployment", "Job")
    }
    assert sorted(found) == ["scheduler.yaml", "training.yaml", "workers.yaml"]
    return found


def words(name):
    (container,) = pods()[name]["spec"]["containers"]
    return [*container["command"], *container["args"]]


def test_manifests_follow_the_schemas_of_kubernetes():
    validator = pytest.importorskip("kubernetes_validate")
    checked = 0
    for name, document in documents():
        if document["kind"] != "Kustomization":
            validator.validate(document, "1.33", strict=True)
            checked += 1
            with pytest.raises(validator.ValidationError):  # it does look
                validator.validate({**document, "spce": {}}, "1.33", strict=True)
        assert document.get("namespace", document.get("metadata", {}).get("namespace", "gcon")) == "gcon", name
    assert checked > 8


def test_everything_is_applied_but_trainings():
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    given = {*kustomization["resources"], *kustomization["configMapGenerator"][0]["files"], "kustomization.yaml"}
    assert given | {"training.yaml"} == {path.name for path in FOLDER.glob("*.yaml")}
    assert all("secret" not in document["kind"].lower() for _, document in documents())  # made by hand, kept nowhere


@pytest.mark.parametrize("name", ["scheduler.yaml", "workers.yaml", "training.yaml"])
def test_pods_can_do_little(name):
    spec = pods()[name]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    assert ("store" in volumes) == (name != "scheduler.yaml")  # a scheduler reads no edges
    for mount in container["volumeMounts"]:
        assert mount.get("readOnly", False) == (mount["name"] not in ("scratch", "ledger"))
    settings = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert settings["DASK_CONFIG"] == "/settings/dask.yaml"


def test_only_pods_of_gcon_are_reached_and_only_where_they_listen():
    (policy,) = (document["spec"] for _, document in documents() if document["kind"] == "NetworkPolicy")
    assert policy["podSelector"] == {}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (coming,) = policy["ingress"]
    open_ports = {port["port"] for port in coming["ports"]}
    said = dict(itertools.pairwise([*words("scheduler.yaml"), *words("workers.yaml")]))
    assert open_ports == {int(said[option]) for option in ("--port", "--worker-port", "--nanny-port")}
    for side in (coming["from"], policy["egress"][0]["to"]):
        assert side == [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "gcon"}}}]
    assert all(pod["metadata"]["labels"]["app.kubernetes.io/name"] == "gcon" for pod in pods().values())


def test_a_training_is_charged_once_whatever_happens_to_its_pod():
    (job,) = (document for _, document in documents() if document["kind"] == "Job")
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert job["spec"]["podFailurePolicy"]["rules"][0]["action"] == "FailJob"
    kept = {
        document["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        for _, document in documents()
        if document["kind"] == "PodDisruptionBudget"
    }
    assert kept == {"scheduler", "training"}


def test_the_command_of_a_training_exists():
    options = {word for word in words("training.yaml") if word.startswith("--")}
    known = {name for parameter in command("train").params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert options <= known
    assert {"--scheduler", "--ledger"} <= options


def documented():
    """The commands of docs/cluster.md, as words."""
    text = (ROOT / "docs" / "cluster.md").read_text().replace("\\\n", " ")
    lines = re.findall(r"^ *DASK_CONFIG=\S+ (dask (?:scheduler|worker) .*)$", text, re.MULTILINE)
    return {line.split()[1]: shlex.split(line) for line in lines}


def test_no_command_answers_in_clear_beyond_its_own_machine():
    started = {"scheduler": words("scheduler.yaml"), "worker": words("workers.yaml")}
    for given in (*started.values(), *documented().values()):
        assert " ".join(QUIET) in " ".join(given)
        assert "--host" in given
    assert len(documented()) == 2
    settings = yaml.safe_load((FOLDER / "dask.yaml").read_text())["distributed"]
    assert settings["comm"]["require-encryption"] is True
    assert settings["scheduler"]["http"]["routes"] == settings["worker"]["http"]["routes"] == []
    assert settings["worker"]["memory"]["spill"] is settings["worker"]["memory"]["target"] is False


def listening(process):
    """Addresses at which a process and its children take connections."""
    own = psutil.Process(process.pid)
    return {
        (connection.laddr.ip, connection.laddr.port)
        for each in (own, *own.children(recursive=True))
        for connection in each.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_documented_commands_listen_on_the_given_address_alone(tmp_path):
    security = distributed.Security.temporary()
    for name, text in (
        ("ca.crt", security.tls_ca_file),
        ("tls.crt", security.tls_scheduler_cert),
        ("tls.key", security.tls_scheduler_key),
    ):
        (tmp_path / name).write_text(text)
    settings = (FOLDER / "dask.yaml").read_text().replace("/certificates/", f"{tmp_path}/")
    (tmp_path / "dask.yaml").write_text(settings)
    environment = {**os.environ, "DASK_CONFIG": str(tmp_path / "dask.yaml"), "DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    started = []
    try:
        address = tmp_path / "address.json"
        for part in ("scheduler", "worker"):
            given = [
                word.replace("10.0.0.1", "127.0.0.1").replace("10.0.0.2", "127.0.0.1") for word in documented()[part]
            ]
            if part == "scheduler":
                given[given.index("--port") + 1] = "0"
                given += ["--scheduler-file", str(address)]
            else:
                given = [word for word in given if not word.startswith("tls://127.0.0.1:8786")]
                given += ["--scheduler-file", str(address)]
            program = [sys.executable, "-m", "dask", *given[1:]]
            started.append(subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL))
            until = time.monotonic() + 60
            wanted = 2 if part == "scheduler" else 3  # TLS and HTTP; and whoever restarts the worker
            while len(listening(started[-1])) < wanted and time.monotonic() < until:
                assert started[-1].poll() is None
                time.sleep(0.2)
            found = listening(started[-1])
            assert len(found) == wanted
            assert {place for place, _ in found} == {"127.0.0.1"}
    finally:
        for process in reversed(started):
            children = psutil.Process(process.pid).children(recursive=True)
            for each in (*children, process):
                each.kill()
            process.wait(30)
