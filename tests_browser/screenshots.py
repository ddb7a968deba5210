"""Pictures of every page at three widths, light and dark, to be looked at: python -m tests_browser.screenshots --out FOLDER

The pages are those of a real training on a made-up graph, of a demo, and of the docs, if they were built.
"""

import argparse
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright

from gcon import MemoryLedger, NodeClassifier
from gcon.cli.demo import CIRCLES
from gcon.files.datasets.synthetic import FRIENDS, FRIENDS_ALIKE, FRIENDS_SIGNAL, social_circles
from gcon.pages.build import site_pages
from gcon.pages.model_report import model_report
from gcon.pages.write import write_site

WIDTHS = (400, 800, 1280)
THEMES = ("light", "dark")
DOCS = ("index", "five-minutes", "promise", "python", "moments", "results/benchmarks", "api/training")


def make_pages(folder, *, demo):
    """All pages by a short name: report, site, the report of a model without a promise, and the demo's."""
    drawn = {"mean_degree": FRIENDS, "homophily": FRIENDS_ALIKE, "feature_signal": FRIENDS_SIGNAL}
    graph = social_circles(2000, num_classes=len(CIRCLES), **drawn, seed=7, name="Sunday circles")
    graph = replace(graph, nodes=replace(graph.nodes, class_names=CIRCLES))
    ledger = MemoryLedger(graph.name)
    model = NodeClassifier(epsilon=1.0, ledger=ledger).fit(graph).model_
    seeded = NodeClassifier(epsilon=1.0, random_state=1).fit(graph).model_
    made = {
        "report": model_report(model, graph.nodes, entries=ledger.entries()),
        "report-no-promise": model_report(seeded, graph.nodes, control_seed=None),
    }
    found = {name: each.save(folder / f"{name}.html") for name, each in made.items()}
    pages = site_pages(model, nodes=graph.nodes, service="", me=True, node_table=True)
    found |= {f"site-{path.stem}": path for path in write_site(pages, folder / "site")}
    if demo:
        place = folder / "demo"
        subprocess.run([sys.executable, "-m", "gcon.cli.app", "demo", "--runs", "2", "--out", place, "-q"], check=True)
        found["demo"] = place / "report.html"
    return found


def take(pages, out, *, widths=WIDTHS):
    """One picture of each whole page per width and theme; returns what overflows sideways, which nothing should."""
    wide = []
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        for theme in THEMES:
            for width in widths:
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
                page = context.new_page()
                for name, place in pages.items():
                    page.goto(place.absolute().as_uri())
                    page.screenshot(path=out / f"{name}-{width}-{theme}.png", full_page=True)
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        wide.append(f"{name} is wider than {width} pixels ({theme})")
                context.close()
        browser.close()
    return wide


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("screenshots"), help="folder for the pictures")
    parser.add_argument("--docs", type=Path, default=Path("site"), help="the built docs")
    parser.add_argument("--no-demo", action="store_true", help="leave out the demo, which trains for half a minute")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pages = make_pages(given.out, demo=not given.no_demo)
    for start in sorted(given.docs.rglob("five-minutes.html"))[-1:]:  # of the newest version
        pages |= {f"docs-{name.replace('/', '-')}": start.parent / f"{name}.html" for name in DOCS}
    wide = take(pages, given.out)
    print("\n".join([*wide, f"Written: {len(list(given.out.glob('*.png')))} pictures in {given.out}"]))
    sys.exit(bool(wide))


if __name__ == "__main__":
    main()
