"""What README and docs say is so: links, names, tables. Their blocks run in `test_blocks_run.py`."""

import ast
import importlib
import inspect
import pkgutil
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gcon
import gcon.mechanisms as gcon_mechanisms
import gcon_lab.mechanisms as lab_mechanisms
from gcon.cli import output
from gcon.files.inputs import MASKS
from gcon.pages.report import LedgerLine, ModelScores, NoiseLevel, ReportData
from gcon.privacy import plan
from gcon.release.layout import NAMES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
API = sorted(DOCS.glob("api/*.md"))


def column(page, place, *, header):
    """One column of the table that starts with this header cell."""
    rows = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("|")]
    start = next(number for number, row in enumerate(rows) if row[0].strip() == header)
    return [row[place].strip() for row in rows[start + 2 :]]


def test_readme_says_the_promise(capsys, tmp_path, monkeypatch):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)  # it keeps a ledger in a file
    exec(block, {})
    printed = capsys.readouterr().out
    assert "(1, 1e-05)-differentially private" in printed
    assert "Budget(epsilon=1.0, delta=1e-05)" in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
            # The site is built from docs/ alone: a link out of it would be dead there.
            assert DOCS not in page.parents or (page.parent / target).resolve().is_relative_to(DOCS), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pictures_have_alternative_text(page):
    for words in re.findall(r"!\[([^\]]*)\]\(", page.read_text()):
        assert len(words) > 20, f"{page.name}: a picture called {words!r}"


def test_the_picture_of_one_edge_serves_light_and_dark_by_itself():
    """It is shown as an image, which knows no style of the page around it and loads nothing."""
    picture = ElementTree.fromstring((DOCS / "one-edge.svg").read_text())
    words = "".join(picture.itertext())
    assert "prefers-color-scheme: dark" in words
    assert not re.search(r"url\(|@import|href", (DOCS / "one-edge.svg").read_text())
    spaces = {"svg": "http://www.w3.org/2000/svg"}
    assert all(picture.findtext(f"svg:{name}", namespaces=spaces) for name in ("title", "desc"))
    for page in (ROOT / "README.md", DOCS / "index.md"):
        assert "one-edge.svg" in page.read_text()


def navigation():
    """The pages in the navigation of mkdocs.yml; read without a YAML library, which the tests' environment lacks."""
    text = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1]
    block = re.split(r"\n(?=\S)", text)[0]
    return re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", block, flags=re.MULTILINE)


def test_the_site_names_every_page_once():
    assert sorted(navigation()) == sorted(str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md"))


def test_the_site_loads_nothing_from_outside():
    """Fonts and icons would come from other hosts; `make docs` looks at the built pages as well."""
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert "//" not in settings
    assert "//" not in (DOCS / "style.css").read_text()


def test_exit_codes_are_those_of_the_command():
    codes = {0, 1} | {code for _, code in output.EXIT_CODES}
    listed = [int(code) for code in column(DOCS / "exit-codes.md", 0, header="code")]
    assert listed == sorted(codes)
    assert [int(code) for code in re.findall(r"^\| (\d+) ", output.__doc__, flags=re.MULTILINE)] == listed
    examples = re.findall(r"^\*\*(\d+)\.\*\*", (DOCS / "exit-codes.md").read_text(), flags=re.MULTILINE)
    assert [int(code) for code in examples] == listed


def test_every_sharp_edge_has_a_severity_and_the_worst_come_first():
    levels = ["high", "medium", "low"]
    found = [levels.index(severity) for severity in column(DOCS / "sharp-edges.md", 1, header="what")]
    assert found == sorted(found)


def reference():
    """All names that the Python reference shows."""
    return [name for page in API for name in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.MULTILINE)]


@pytest.mark.parametrize("name", reference())
def test_names_in_the_reference_exist(name):
    module, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), last)


def test_the_reference_shows_every_public_name():
    shown, index = set(reference()), (DOCS / "api" / "index.md").read_text()
    for name in gcon.__all__:
        assert f"`{name}`" in index
        thing = getattr(gcon, name)
        if name not in (
            "__version__",
            "datasets",
            "model_selection",
            "GconError",
        ):  # a string, modules, and shown with its module
            assert f"{thing.__module__}.{thing.__qualname__}" in shown
    shown_data_sets = {name.rpartition(".")[2] for name in shown if name.startswith("gcon.files.datasets.")}
    assert shown_data_sets == set(gcon.datasets.__all__)


def described(thing, section):
    """The names in a section of a docstring; several may share a line."""
    found = re.search(rf"^{section}:\n((?:    .*\n|\n)*)", f"{inspect.getdoc(thing) or ''}\n", flags=re.MULTILINE)
    lines = re.findall(r"^    (\w[^:\n]*):", found[1], flags=re.MULTILINE) if found else []
    return {name for line in lines for name in line.split(", ")}


def untyped(thing):
    """What a docstring describes and no annotation declares: the reference would show no type, or another one's."""
    if inspect.isclass(thing):
        declared = {name for kind in thing.__mro__ for name in (*vars(kind).get("__annotations__", {}), *vars(kind))}
        yield from described(thing, "Attributes") - declared
        methods = (getattr(thing, name) for name in vars(thing) if not name.startswith("_"))
        for method in methods:
            yield from untyped(method) if inspect.isroutine(method) else ()
    if callable(thing):
        parameters = inspect.signature(thing).parameters
        typed = {name for name in parameters if parameters[name].annotation is not inspect.Parameter.empty}
        yield from described(thing, "Args") - typed


@pytest.mark.parametrize("name", [name for name in reference() if name != "gcon.errors"])
def test_the_reference_has_a_type_for_what_it_describes(name):
    module, _, last = name.rpartition(".")
    assert list(untyped(getattr(importlib.import_module(module), last))) == []


def test_a_missing_type_is_found():
    class Described:
        """Described.

        Attributes:
            width: declared nowhere.
        """

    assert list(untyped(Described)) == ["width"]


def test_file_formats_name_every_file_and_field():
    text = (DOCS / "file-formats.md").read_text()
    records = (ReportData, ModelScores, NoiseLevel, LedgerLine)
    fields = [name for record in records for name in record.__struct_fields__]
    for name in (*fields, *NAMES):
        assert f"`{name}`" in text, name


def test_the_page_on_python_names_every_mask():
    text = (DOCS / "python.md").read_text().partition("\n## Labels and masks\n")[2].partition("\n## ")[0]
    for name in (*MASKS, "val_mask", "train", "val", "validation", "test", "split"):
        assert f"`{name}`" in text, name


def named_files(page):
    """Every Python file and folder of ours that a page names, by line; a bare name lies beside the path before it in its line."""
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        folder = ROOT
        for name in re.findall(r"`([^`\s]+\.py|(?:src|lab|tests\w*)/[^`\s]+)`", line):
            path = ROOT / name if (ROOT / name.split("/")[0]).is_dir() else folder / name
            folder = path.parent if path.suffix else folder
            yield f"{page.relative_to(ROOT)}:{number} names {name}", path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page):
    assert [words for words, path in named_files(page) if not path.exists()] == []


def proven_classes():
    """All classes registered with a proof page, of the product and of the laboratory."""
    for package in (gcon_mechanisms, lab_mechanisms):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return sorted(
        ((kind, page) for kind, page in plan.PROOF_PAGES.items() if kind.__module__.startswith(("gcon.", "gcon_lab."))),
        key=lambda pair: pair[0].__qualname__,
    )


def test_every_proof_page_names_the_file_of_what_it_proves():
    classes = proven_classes()
    assert {"EdgeMoments", "NoisyRelease", "ObjectivePerturbation", "NoisySums"} <= {
        kind.__name__ for kind, _ in classes
    }
    for kind, page in classes:
        named = {path.resolve() for _, path in named_files(DOCS / "proofs" / f"{page}.md")}
        assert Path(inspect.getsourcefile(kind)).resolve() in named, f"docs/proofs/{page}.md: {kind.__module__}"


def test_no_mechanism_is_registered_elsewhere():
    """The test above looks into these rooms alone."""
    users = [
        path
        for place in ("src", "lab/gcon_lab")
        for path in (ROOT / place).rglob("*.py")
        if "@proven(" in path.read_text()
    ]
    rooms = {str(path.relative_to(ROOT).parent) for path in users}
    assert rooms == {"src/gcon/privacy", "src/gcon/mechanisms", "lab/gcon_lab/mechanisms"}


def test_the_picture_of_the_rooms_is_new():
    """Made by benchmarks/rooms.py; a new arrow between rooms, or a circle, shows here."""
    script = runpy.run_path(str(ROOT / "benchmarks" / "rooms.py"))
    imports = script["imports_of_rooms"]()
    assert script["problems"](imports) == []
    assert (DOCS / "rooms.svg").read_text() == script["picture"](imports), "run .venv/bin/python benchmarks/rooms.py"


def test_circles_and_a_product_that_needs_the_laboratory_are_found():
    problems = runpy.run_path(str(ROOT / "benchmarks" / "rooms.py"))["problems"]
    assert len(problems({"gcon.a": {"gcon.b"}, "gcon.b": {"gcon.a"}})) == 1
    assert len(problems({"gcon.a": {"gcon_lab.b"}, "gcon_lab.b": set()})) == 1
    assert problems({"gcon_lab.b": {"gcon.a"}, "gcon.a": set()}) == []


def test_the_walk_names_functions_that_are_there():
    """It is written by a command, and nobody notices a page that is older than the code."""
    for path, names in re.findall(r"^\| `(\S+\.py)` \| (.+) \|$", (DOCS / "walk.md").read_text(), flags=re.MULTILINE):
        tree = ast.parse((ROOT / path).read_text())
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        walked = {name.rpartition(".")[2] for name in re.findall(r"`([^`]+)`", names)}
        assert walked <= found, f"{path}; run .venv/bin/python benchmarks/walk.py --page docs/walk.md"
