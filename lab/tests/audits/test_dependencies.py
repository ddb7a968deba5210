"""The dependency audit: an unreachable source of advisories is never mistaken for good news."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcon_lab.audits import dependencies
from gcon_lab.audits.dependencies import CANARY, audit_dependencies

CLEAN = {"name": "numpy", "version": "2.3.0", "vulns": []}
SKIPPED = {"name": "torch", "skip_reason": "Dependency not found on PyPI and could not be audited: torch (2.13.0+cpu)"}
HOLE = {"id": "PYSEC-2030-1", "fix_versions": ["9.9"], "aliases": [], "description": "bad"}
BROKEN = {"name": "urllib3", "version": "1.0", "vulns": [HOLE]}
KNOWN = {"name": "jinja2", "version": "2.4.1", "vulns": [HOLE]}


def source(packages, *, canary=(KNOWN,)):
    """A stand-in for pip-audit."""

    def ask(options):
        if "--requirement" in options:
            assert Path(options[options.index("--requirement") + 1]).read_text().strip() == CANARY
            return json.dumps({"dependencies": list(canary), "fixes": []}), ""
        return json.dumps({"dependencies": packages, "fixes": []}), ""

    return ask


def test_good_news_names_what_was_not_looked_up():
    found = audit_dependencies(source([CLEAN, SKIPPED]))
    assert found.code == 0
    assert found.words.startswith("AUDITED: 1 packages, none with a known vulnerability.")
    assert "Not looked up (1): torch." in found.words


def test_a_known_vulnerability_fails():
    found = audit_dependencies(source([CLEAN, BROKEN, SKIPPED]))
    assert found.code == 1
    assert found.words.splitlines()[:2] == [
        "VULNERABLE: 1 of 2 packages.",
        "  urllib3 1.0: PYSEC-2030-1 (repaired in 9.9)",
    ]
    assert "torch" in found.words


@pytest.mark.parametrize(
    "ask",
    [
        lambda options: ("", "ERROR: ConnectionError: no route to host"),
        lambda options: ("not json", ""),
        lambda options: ("[]", ""),
        lambda options: ('{"dependencies": [1]}', ""),
        source([SKIPPED]),  # what pip-audit reports, with success, from a registry without advisories
        source([]),
        source([CLEAN], canary=[{**KNOWN, "vulns": []}]),
        source([CLEAN], canary=[SKIPPED]),
    ],
)
def test_no_source_is_no_news(ask):
    found = audit_dependencies(ask)
    assert found.code == 0
    assert found.words.startswith("NOT AUDITED: no advisory was looked up (")


def test_a_source_that_does_not_answer(monkeypatch):
    def slow(*_, **options):
        raise subprocess.TimeoutExpired("pip_audit", options["timeout"])

    monkeypatch.setattr(dependencies.subprocess, "run", slow)
    assert "no answer within 300 seconds" in audit_dependencies().words


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('ERROR: could not reach https://pypi.org')", "could not reach https://pypi.org"),
        ("raise ModuleNotFoundError('No module named pip_audit')", "No module named pip_audit"),
    ],
)
def test_as_make_runs_it(tmp_path, program, reason):
    """The whole program, with a pip-audit that cannot reach anything."""
    (tmp_path / "pip_audit.py").write_text(program)
    done = subprocess.run(
        [sys.executable, dependencies.__file__],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("NOT AUDITED")
    assert reason in done.stdout
