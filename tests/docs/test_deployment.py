"""The files in `deploy/`: what they call exists, and every program that is here to check them agrees."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gcon.cli.app import command
from gcon.serve.settings import Limits

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def program(name):
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not on this machine")


def joined(text):
    """Lines that end with a backslash, with the next."""
    return text.replace("\\\n", " ")


def calls():
    """Every call of gcon serve, as words after `serve`."""
    unit = re.search(r"^ExecStart=\S+/gcon serve (.*)$", joined((DEPLOY / "gcon.service").read_text()), re.MULTILINE)[1]
    comment = re.sub(r"\\\n#", " ", (DEPLOY / "Containerfile").read_text())
    shown = re.search(r"^#.* gcon (/data/.*)$", comment, re.MULTILINE)[1]
    return {"gcon.service": shlex.split(unit), "Containerfile": shlex.split(shown)}


@pytest.mark.parametrize("file", ["gcon.service", "Containerfile"])
def test_options_exist_and_all_that_owners_need_is_passed(file):
    run = command("serve").commands["run"]
    known = {name for parameter in run.params for name in (*parameter.opts, *parameter.secondary_opts)}
    options = {word for word in calls()[file] if word.startswith("--")}
    assert options <= known
    assert {"--nodes", "--edges", "--tokens", "--ledger", "--access-log"} <= options


def test_what_the_service_writes_is_what_its_unit_may_write():
    text, words = (DEPLOY / "gcon.service").read_text(), calls()["gcon.service"]
    given = dict(itertools.pairwise(words))
    assert "ProtectSystem=strict" in text
    for option, folder, line in (
        ("--tokens", "/var/lib/gcon", "StateDirectory=gcon"),
        ("--ledger", "/var/lib/gcon", "StateDirectory=gcon"),
        ("--access-log", "/var/log/gcon", "LogsDirectory=gcon"),
    ):
        assert str(Path(given[option]).parent) == folder
        assert f"\n{line}\n" in text
    assert "NUMBA_CACHE_DIR=/var/cache/gcon" in text
    assert "\nCacheDirectory=gcon\n" in text
    assert given["--host"] == "127.0.0.1"  # the proxy is the way in


def test_proxies_let_through_what_the_service_takes():
    most = Limits().most_bytes // 2**20
    nginx, caddy = (DEPLOY / "nginx.conf").read_text(), (DEPLOY / "Caddyfile").read_text()
    assert f"client_max_body_size {most}m;" in nginx
    assert f"client_body_buffer_size {most}m;" in nginx  # as much in memory: nothing of a question is put on a disk
    assert f"max_size {most}MiB" in caddy
    assert "X-Forwarded-For $remote_addr;" in nginx
    for text in (nginx, caddy):
        assert "/metrics" in text
        assert "127.0.0.1:8000" in text


@program("systemd-analyze")
def test_systemd_takes_the_unit(tmp_path):
    unit = tmp_path / "gcon.service"
    here = str(Path(sys.prefix) / "bin" / "gcon")  # systemd looks whether the program is there
    unit.write_text((DEPLOY / "gcon.service").read_text().replace("/opt/gcon/bin/gcon", here))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gcon.service" not in done.stdout + done.stderr  # it may complain about other units of the machine
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystm=strict"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert "ProtectSystm" in done.stdout + done.stderr  # it does look


@program("nginx")
def test_nginx_takes_its_file(tmp_path):
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=test",
            "-keyout",
            tmp_path / "key",
            "-out",
            tmp_path / "chain",
        ],
        check=True,
        capture_output=True,
    )
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.replace("/etc/ssl/answers.example.org/fullchain.pem", str(tmp_path / "chain"))
    text = text.replace("/etc/ssl/answers.example.org/privkey.pem", str(tmp_path / "key"))
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path / 'pid'};\nevents {{}}\nhttp {{\n{text}\n}}\n")
    done = subprocess.run(["nginx", "-t", "-c", whole, "-p", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@program("caddy")
def test_caddy_takes_its_file():
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
