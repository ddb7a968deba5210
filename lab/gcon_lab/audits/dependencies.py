"""Is anything that this environment runs known to be vulnerable? `make audit-deps` asks pip-audit, and says what it could ask.

pip-audit ends with success also where its source of advisories knows none of the packages, so its word alone is not taken:

| what is found                                                                    | said        | exit code |
|----------------------------------------------------------------------------------|-------------|-----------|
| no pip-audit, no answer, or a source that knows no package, or not the `CANARY`  | NOT AUDITED | 0         |
| packages looked up, none with a known vulnerability                              | AUDITED     | 0         |
| a known vulnerability                                                            | VULNERABLE  | 1         |

The standard library alone, so that it also runs where nothing of ours is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CANARY = "jinja2==2.4.1"  # of 2010; every source of advisories knows several for it
_SECONDS = 300

Ask = Callable[[Sequence[str]], tuple[str, str]]


class NothingKnownError(Exception):
    """No advisory was looked up; the message says why."""


@dataclass(frozen=True)
class Advisories:
    """What is said, and the exit code."""

    words: str
    code: int


def ask_pip_audit(options: Sequence[str]) -> tuple[str, str]:
    """What pip-audit prints, on standard output and standard error; its exit code tells too little."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "", f"no answer within {_SECONDS} seconds"
    return done.stdout, done.stderr


def audit_dependencies(ask: Ask = ask_pip_audit) -> Advisories:
    """Look up every installed package.

    Args:
        ask: pip-audit, or a stand-in.
    """
    try:
        return _audited(ask)
    except NothingKnownError as reason:
        words = f"NOT AUDITED: no advisory was looked up ({reason}). Nothing is known, good or bad; run it elsewhere."
        return Advisories(words, 0)


def _audited(ask: Ask) -> Advisories:
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "canary.txt"
        wanted.write_text(f"{CANARY}\n")
        known = _dependencies(*ask(["--requirement", str(wanted), "--no-deps", "--disable-pip"]))
    if not any(entry.get("vulns") for entry in known):
        raise NothingKnownError(f"the source of advisories that was reached does not know those of {CANARY}")
    found = _dependencies(*ask(["--local", "--skip-editable"]))
    looked_up = [entry for entry in found if "vulns" in entry]
    if not looked_up:
        raise NothingKnownError(f"none of the {len(found)} packages could be looked up")
    left_out = sorted(str(entry.get("name")) for entry in found if "vulns" not in entry)
    missing = f"\nNot looked up ({len(left_out)}): {', '.join(left_out)}." if left_out else ""
    vulnerable = [_told(entry) for entry in looked_up if entry["vulns"]]
    if vulnerable:
        head = f"VULNERABLE: {len(vulnerable)} of {len(looked_up)} packages."
        return Advisories("\n".join([head, *vulnerable]) + missing, 1)
    return Advisories(f"AUDITED: {len(looked_up)} packages, none with a known vulnerability.{missing}", 0)


def _dependencies(output: str, errors: str) -> list[dict[str, Any]]:
    """The packages of a report."""
    try:
        found = json.loads(output)["dependencies"]
        if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
            return found
    except (KeyError, TypeError, ValueError):
        pass
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    raise NothingKnownError(lines[-1] if lines else "pip-audit gave no report")


def _told(entry: dict[str, Any]) -> str:
    told = [
        f"{each['id']} (repaired in {', '.join(each.get('fix_versions', [])) or 'none'})" for each in entry["vulns"]
    ]
    return f"  {entry.get('name')} {entry.get('version')}: {'; '.join(told)}"


def main() -> int:
    outcome = audit_dependencies()
    sys.stdout.write(f"{outcome.words}\n")
    return outcome.code


if __name__ == "__main__":
    sys.exit(main())
