"""Opens a report, or a page of the site, in Chromium and says what is wrong with it.

A page that needs anything from elsewhere, lacks a figure or a number, or cannot be read is a broken report, however its
HTML looks. Nothing leaves the machine even if the page asks for it: other addresses are answered with a refusal.
"""

import csv
import io
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

# What the report promises to show. In the tests' own words, so that a section cannot quietly leave the product.
SECTIONS = {
    "promise": "The promise",
    "accuracy": "Accuracy against epsilon",
    "noise": "What the noise does",
    "confusion": "Confusion matrix",
    "calibration": "Calibration",
    "settings": "Settings",
    "ledger": "Ledger",
}
NUMBERED = ("accuracy", "noise", "confusion", "calibration")  # with a table, and its file to take along
WIDTHS = (1200, 400)
LEAST_CONTRAST = 4.5  # WCAG AA for text
LEAST_TEXT = 8.9  # pixels
LEAST_WIDTH, LEAST_HEIGHT = 250, 150  # of a figure, pixels

_TABLES = """() => [...document.querySelectorAll('table')].map(table => ({
  place: table.closest('section')?.id ?? 'no section',
  height: table.getBoundingClientRect().height,
  head: [...table.querySelectorAll('thead th')].map(cell => cell.textContent),
  rows: [...table.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent)),
}))"""
_CHART = """svg => {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(text => {
    const around = text.getBoundingClientRect(), matrix = text.getScreenCTM();
    return {
      words: text.textContent.trim(),
      size: parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b),
      around: [around.left, around.top, around.right, around.bottom],
      inside: around.left >= box.left - 1 && around.right <= box.right + 1
        && around.top >= box.top - 1 && around.bottom <= box.bottom + 1,
    };
  });
  const lines = [...svg.querySelectorAll('.line')];
  return {
    width: box.width, height: box.height, texts, lines: lines.length,
    unseen: lines.filter(line => getComputedStyle(line).stroke === 'none' || !line.getBoundingClientRect().width).length,
    band: Math.max(0, ...[...svg.querySelectorAll('.band')].map(band => band.getBoundingClientRect().height)),
  };
}"""
# What sticks out to the right, but for what lies in a box that scrolls on its own.
_OVERFLOW = """() => {
  const edge = document.documentElement.clientWidth, out = [];
  if (document.documentElement.scrollWidth > edge) out.push('the page');
  for (const element of document.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > edge + 1 && !element.parentElement.closest('.scroll')) out.push(element.tagName);
  }
  return out;
}"""
# Every text against what really lies behind its middle: boxes and shapes, blended by their opacity.
_CONTRAST = """() => {
  const parsed = words => {
    const numbers = words.match(/[\\d.]+(e-?\\d+)?/g)?.map(Number);
    const scale = words.startsWith('color(srgb') ? 255 : words.startsWith('rgb') ? 1 : 0;  // mixed colours are the former
    return numbers && scale ? [...numbers.slice(0, 3).map(value => scale * value), numbers[3] ?? 1] : null;
  };
  const over = (front, back) => back.map((value, i) => front[3] * front[i] + (1 - front[3]) * value);
  const light = colour => {
    const [r, g, b] = colour.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paint = element => {
    const style = getComputedStyle(element);
    const shape = element instanceof SVGGeometryElement;
    const colour = parsed(shape ? style.fill : element instanceof SVGElement ? '' : style.backgroundColor);
    return colour && [...colour.slice(0, 3), colour[3] * style.opacity * (shape ? style.fillOpacity : 1)];
  };
  const behind = (element, x, y) => {
    const stack = document.elementsFromPoint(x, y);
    const from = stack.findIndex(found => found === element || found.contains(element) || element.contains(found));
    return stack.slice(Math.max(from, 0)).reverse().map(paint).filter(Boolean)
      .reduce((back, front) => over(front, back), [255, 255, 255]);
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].filter(node => node.nodeType === 3 && node.data.trim());
    if (!own.length || ['style', 'STYLE', 'title', 'desc'].includes(element.tagName)) continue;
    element.scrollIntoView({ block: 'center', inline: 'center' });
    const range = document.createRange();
    range.selectNodeContents(own[0]);
    const boxes = [...range.getClientRects()];  // of a line that is in sight, where the text has several
    const box = boxes.find(line => line.left + line.width / 2 > 0 && line.left + line.width / 2 < innerWidth) ?? boxes[0];
    if (!box || !box.width) continue;
    const style = getComputedStyle(element), svg = element instanceof SVGElement;
    const back = behind(element, box.left + box.width / 2, box.top + box.height / 2);
    const ink = over(parsed(svg ? style.fill : style.color), back);
    const [low, high] = [light(ink), light(back)].sort((a, b) => a - b);
    found.push({ words: own[0].data.trim().slice(0, 40), ratio: (high + 0.05) / (low + 0.05) });
  }
  scrollTo(0, 0);
  const paper = parsed(getComputedStyle(document.body).backgroundColor).slice(0, 3);
  return { texts: found, paper: light(paper) };
}"""
_REFERENCES = """allowed => [...document.querySelectorAll('*')].flatMap(element =>
  ['src', 'srcset', 'href', 'xlink:href', 'action', 'poster', 'data'].filter(name => element.hasAttribute(name))
    .map(name => element.getAttribute(name)).filter(value => !value.startsWith('data:') && !allowed.includes(value)
      && !(value.startsWith('#') && document.getElementById(value.slice(1))))
    .map(value => `${element.tagName} ${value}`))"""


def problems(browser, path, *, width=1200, dark=False, bands=False):
    """Everything that is wrong with the report at `path`, in words; an empty list if it is whole.

    Args:
        browser: a running Chromium.
        path: the HTML file.
        width: of the window, in pixels.
        dark: whether the reader's system is dark.
        bands: whether the record holds several runs, so that the accuracy needs a band.
    """
    with opened(browser, Path(path).absolute().as_uri(), width=width, dark=dark) as (page, told):
        found = [*_sections(page), *_figures(page, bands), *_tables_and_files(page), *_reading(page, dark)]
        found += [f"overflow at {width} pixels: {what}" for what in page.evaluate(_OVERFLOW)]
        found += [f"a reference that leads nowhere or away: {what}" for what in page.evaluate(_REFERENCES, [])]
        page.wait_for_load_state("networkidle")
        return found + told


def page_problems(page, told, *, width, dark, links=()):
    """What is wrong with any page that `opened` gave: its reading, its size, its references, and what it asked for.

    Args:
        page: the page, in whatever state it is to be looked at.
        told: what was told while it lived.
        width: of the window, in pixels.
        dark: whether the reader's system is dark.
        links: names of files beside it that it may link to.
    """
    found = [*_reading(page, dark, least=15)]
    found += [f"overflow at {width} pixels: {what}" for what in page.evaluate(_OVERFLOW)]
    found += [f"a reference that leads nowhere or away: {what}" for what in page.evaluate(_REFERENCES, list(links))]
    page.wait_for_load_state("networkidle")
    return found + told


@contextmanager
def opened(browser, address, *, width=1200, dark=False, service=None, **options):
    """The page, all details open, and what is told while it lives: requests that leave it and words on its console.

    Args:
        browser: a running Chromium.
        address: of the page.
        width: of the window, in pixels.
        dark: whether the reader's system is dark.
        service: an origin that the page may ask; all others are refused, and told.
        options: further ones of the browser's context.
    """
    told = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
        **options,
    )
    fine = ("data:", "blob:") if service is None else ("data:", "blob:", f"{service}/")

    def requested(request):
        if request.url != address and not request.url.startswith(fine):
            told.append(f"a request leaves the page: {request.url}")

    context.on("request", requested)
    context.on("weberror", lambda failure: told.append(f"script error: {failure.error}"))
    context.route(lambda url: not url.startswith(("file:", *fine)), lambda route: route.abort())
    page = context.new_page()
    page.on("websocket", lambda socket: told.append(f"a request leaves the page: {socket.url}"))
    page.on("console", lambda message: told.append(f"console, {message.type}: {message.text}"))
    try:
        page.goto(address)
        for summary in page.locator("summary").all():
            summary.click()
        yield page, told
    finally:
        context.close()


def _sections(page):
    for name, title in SECTIONS.items():
        section = page.locator(f"section#{name}")
        if section.count() != 1 or not section.get_by_role("heading", name=title, exact=True).is_visible():
            yield f"section '{title}' is missing"
    if not page.locator("#promise li").count():
        yield "the promise has no sentence"
    if "for the operator" not in page.locator("header").inner_text():
        yield "the page does not say for whom it is"


def _figures(page, bands):
    for name in ("noise", "calibration"):
        if not any(bar.is_visible() for bar in page.locator(f"section#{name} .bar").all()):
            yield f"'{name}' has no bars"
    chart = page.locator("section#accuracy figure svg")
    if chart.count() != 1:
        yield "the chart is missing"
        return
    seen, named = chart.evaluate(_CHART), page.locator(".lines li").count()
    if not chart.is_visible() or seen["width"] < LEAST_WIDTH or seen["height"] < LEAST_HEIGHT:
        yield "the chart has no visible size"
    if seen["lines"] != named or not named:
        yield f"the chart has {seen['lines']} lines and names {named}"
    if seen["unseen"]:
        yield "a line of the chart cannot be seen"
    for text in seen["texts"]:
        if text["size"] < LEAST_TEXT:
            yield f"the chart: '{text['words']}' is only {text['size']:.1f} pixels high"
        if not text["inside"]:
            yield f"the chart: '{text['words']}' is cut off"
    for first, second in combinations(seen["texts"], 2):
        if _over(first["around"], second["around"]):
            yield f"the chart: '{second['words']}' lies over '{first['words']}'"
    tables = [table for table in _tables(page) if table["place"] == "accuracy"]
    budgets = {dict(zip(table["head"], row, strict=True))["epsilon"] for table in tables for row in table["rows"]} - {
        ""
    }
    if missing := budgets - {text["words"] for text in seen["texts"]}:
        yield f"the chart does not show {sorted(missing)}"
    if bands and not seen["band"] > 5:
        yield "the accuracy has no band"


def _over(first, second):
    """Whether two boxes share more than a touch."""
    shared = [min(first[side + 2], second[side + 2]) - max(first[side], second[side]) for side in (0, 1)]
    return min(shared) > 2


def _tables(page):
    return page.evaluate(_TABLES)


def _tables_and_files(page):
    tables = {table["place"]: table for table in _tables(page)}
    for name in (*NUMBERED, "settings", "ledger"):
        if name not in tables:
            yield f"table '{name}' is missing"
            continue
        table = tables[name]
        if not table["rows"]:
            yield f"table '{name}' has no rows"
        if not table["height"] or any(len(row) != len(table["head"]) for row in table["rows"]):
            yield f"table '{name}' is not whole"
    for name in NUMBERED:
        link = page.locator(f"section#{name} a[download]")
        if link.count() != 1:
            yield f"'{name}' has no file to take along"
            continue
        with page.expect_download() as started:
            link.click()
        file = started.value
        if file.suggested_filename != link.get_attribute("download"):
            yield f"the file of '{name}' is called '{file.suggested_filename}'"
        text = Path(file.path()).read_bytes().decode("utf-8")
        shown = tables.get(name, {"head": [], "rows": []})
        if name == "confusion":  # its columns are named after the classes alone
            shown["head"] = [*shown["head"][:1], *(f"predicted {word}" for word in shown["head"][1:])]
        if list(csv.reader(io.StringIO(text, newline=""))) != [shown["head"], *shown["rows"]]:
            yield f"the file of '{name}' does not hold the numbers of its table"


def _reading(page, dark, least=50):
    seen = page.evaluate(_CONTRAST)
    if (seen["paper"] < 0.5) != dark:
        yield f"the page does not follow the reader's {'dark' if dark else 'light'} system"
    if len(seen["texts"]) < least:
        yield "almost no text was found"
    for text in seen["texts"]:
        if text["ratio"] < LEAST_CONTRAST:
            yield f"'{text['words']}' has a contrast of only {text['ratio']:.1f}"
