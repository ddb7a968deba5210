"""The files in `deploy/` at work, where their programs are installed: nginx in front of a service, and the image."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.serve.conftest import running

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BUILDER = next((name for name in ("podman", "docker") if shutil.which(name) is not None), None)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def nginx(world, tmp_path):
    """nginx with the file as it is, but for ports, certificate and folders; where it listens."""
    files = ["-keyout", tmp_path / "key", "-out", tmp_path / "chain"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", *files]
    subprocess.run(made, check=True, capture_output=True)
    plain, secure = free_port(), free_port()
    text = (DEPLOY / "nginx.conf").read_text()
    rates = ("--per-address", 60, "--burst", 5, "--behind-proxy", "127.0.0.1")
    with running(world, tmp_path, rates=rates) as service:
        for here, there in (
            ("/etc/ssl/answers.example.org/fullchain.pem", str(tmp_path / "chain")),
            ("/etc/ssl/answers.example.org/privkey.pem", str(tmp_path / "key")),
            ("listen [::]:80;\n", "\n"),
            ("listen [::]:443 ssl;\n", "\n"),
            ("listen 80;", f"listen 127.0.0.1:{plain};"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;"),
            ("127.0.0.1:8000", urlsplit(service.address).netloc),
        ):
            assert here in text
            text = text.replace(here, there)
        folders = "".join(
            f"{kind}_temp_path {tmp_path / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        whole = tmp_path / "nginx.conf"
        whole.write_text(
            f"pid {tmp_path / 'pid'};\nerror_log {tmp_path / 'nginx.log'};\nevents {{}}\nhttp {{\n{folders}{text}\n}}\n"
        )
        program = [shutil.which("nginx"), "-c", whole, "-p", tmp_path, "-e", tmp_path / "nginx.log"]
        process = subprocess.Popen([*program, "-g", "daemon off;"])
        try:
            until = time.monotonic() + 20
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                assert process.poll() is None, (tmp_path / "nginx.log").read_text()
                assert time.monotonic() < until
                time.sleep(0.05)
            yield secure, plain
        finally:
            process.terminate()
            process.wait(20)


def asked(port, method, path, body=None, **headers):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
    try:
        connection.request(method, path, body, {"host": "answers.example.org", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not on this machine")
def test_nginx_in_front_of_a_service(world, nginx):
    secure, plain = nginx
    status, body = asked(
        secure, "POST", "/me", json.dumps({"node": "n3"}), authorization=f"Bearer {world.tokens['n3']}"
    )
    assert (status, json.loads(body)["audience"]) == (200, "owner only")
    assert asked(secure, "GET", "/metrics")[0] == 404
    assert asked(secure, "POST", "/predict", b" " * (2**22 + 1))[0] == 413
    claims = [asked(secure, "GET", "/health", **{"x-forwarded-for": f"10.0.0.{turn}"})[0] for turn in range(8)]
    assert claims.count(429) >= 3  # who claims other addresses is limited all the same
    connection = http.client.HTTPConnection("127.0.0.1", plain, timeout=20)
    connection.request("GET", "/health", headers={"host": "answers.example.org"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["location"]) == (308, "https://answers.example.org/health")
    connection.close()


def builder_works():
    """Whether an image can be built: a client without its daemon cannot."""
    return BUILDER is not None and subprocess.run([BUILDER, "info"], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(BUILDER is None, reason="neither podman nor docker is on this machine")
def test_the_image_serves():
    if not builder_works():
        pytest.skip(f"{BUILDER} is on this machine, and cannot build: its daemon does not run")
    build = [BUILDER, "build", "-t", "gcon-test", "-f", DEPLOY / "Containerfile", ROOT]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = subprocess.run(
        [BUILDER, "run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "gcon-test", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--most-neighbours" in shown.stdout, shown.stderr[-2000:]
