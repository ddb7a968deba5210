"""Build the site of this version into site/VERSION, beside the versions that are there, and check that it needs no network.

`make docs` runs it, with an environment of its own: Zensical reads our sources as text, so gcon need not be installed.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE, NEW = ROOT / "site", ROOT / "build" / "docs"
OUTSIDE = re.compile(r'<(?:link|script|img|iframe)\b[^>]*\b(?:src|href)="?(?:https?:)?//')
START = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<title>gcon</title>
<h1>gcon: documentation by version</h1>
<ul>
{versions}
</ul>
</html>
"""


def by_number(version: str) -> tuple[list[int], bool]:
    """Sorts versions: 0.10 after 0.9, and a release (True) after its candidates."""
    number = re.match(r"[\d.]*\d|", version)[0]  # type: ignore[index]  # which the empty word matches too
    return [int(part) for part in number.split(".") if part], version == number


def loads_from_outside(folder: Path) -> list[str]:
    """The pages that load anything from another host."""
    return sorted(str(page) for page in folder.rglob("*.html") if OUTSIDE.search(page.read_text(encoding="utf-8")))


def write_start(site: Path) -> None:
    """The list of the versions: for the selector of the pages, and for people, whom it sends to the newest release."""
    versions = sorted((page.parent.name for page in site.glob("*/index.html")), key=by_number, reverse=True)
    listed = [{"version": version, "title": version, "aliases": []} for version in versions]
    (site / "versions.json").write_text(json.dumps(listed) + "\n", encoding="utf-8")
    links = "\n".join(f'<li><a href="{version}/index.html">{version}</a></li>' for version in versions)
    newest = next((version for version in versions if by_number(version)[1]), versions[0])
    (site / "index.html").write_text(START.format(newest=newest, versions=links), encoding="utf-8")


def main() -> int:
    """Build, check, and put in its place."""
    (version,) = re.findall(r'__version__ = "([^"]+)"', (ROOT / "src" / "gcon" / "version.py").read_text())
    shutil.rmtree(NEW, ignore_errors=True)
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean", "-f", "mkdocs.yml"]
    built = subprocess.run(command, cwd=ROOT, check=False).returncode
    if built != 0 or not (NEW / "search.js").is_file():  # which is how a page that was opened from disk searches
        sys.stderr.write("The site was not built whole: see above.\n")
        return 1
    outside = loads_from_outside(NEW)
    if outside:
        sys.stderr.write("The site must work without a network. These load from outside:\n" + "\n".join(outside) + "\n")
        return 1
    place = SITE / version
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    NEW.rename(place)
    write_start(SITE)
    sys.stdout.write(f"{place.relative_to(ROOT)}/index.html\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
