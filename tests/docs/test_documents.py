"""Every Python block in README and docs runs; every file they link to exists; no figure of a machine slips in."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run(page, capsys):
    space = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), space)


def test_readme_says_the_promise(capsys):
    space = {}
    exec(blocks(ROOT / "README.md", "python")[0], space)
    printed = capsys.readouterr().out
    assert "(1, 1e-05)-differentially private" in printed
    assert "Budget(epsilon=1.0, delta=1e-05)" in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_in_the_readme_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"`?make ([a-z-]+)", page.read_text()):
            assert target in targets, target


def test_modules_named_in_commands_exist():
    for page in PAGES:
        for module in re.findall(r"-m (gcon[.a-z_]+)", page.read_text()):
            assert (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").exists(), module
