"""Pages that need nothing but themselves, light or dark as the reader's system is: the frame, tables, figures, files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

Row = Sequence[object]
STYLE = """
:root { color-scheme: light dark; --paper: #fdfdfb; --ink: #1d2226; --soft: #59636b; --faint: #c3c9cd; --card: #f3f4f1;
  --main: #1565b8; --second: #b4570c; --edge-free: #6b7379; --one-hop: #a3269a; --self-training: #187a3d;
  --objective: #8a6d00; --non-private: #1d2226; --warn: #9a3412; --warn-paper: #fff1e6; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181b; --ink: #e7eaec; --soft: #a3adb5; --faint: #4b555c;
  --card: #1d2327; --main: #6db3f8; --second: #f2a65a; --edge-free: #9fa9b0; --one-hop: #e38fdc; --self-training: #6fd08f;
  --objective: #d9bd4a; --non-private: #e7eaec; --warn: #ffb689; --warn-paper: #33211a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 54rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; } h2 { font-size: 1.3rem; margin: 2.8rem 0 .6rem; }
header p, figcaption, .small { color: var(--soft); } a { color: var(--main); }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: 0; margin: 1.2rem 0; list-style: none; }
.warn { color: var(--warn); background: var(--warn-paper); border-left: 4px solid var(--warn); padding: .5rem .8rem;
  border-radius: 4px; }
.verdict { background: var(--card); border-radius: 8px; padding: .9rem 1.2rem; margin: 1rem 0; }
.verdict p { margin: .35rem 0; }
figure { margin: 1rem 0; padding: 1rem; background: var(--card); border-radius: 8px; }
figure svg { display: block; width: 100%; margin: .4rem auto; }
figure svg text { font-family: system-ui, sans-serif !important; }
figure .warn { margin: 0 0 .5rem; font-weight: 600; }
figure { --under: var(--card); }
.scroll { overflow-x: auto; /* a shadow where more lies to the right */
  background: linear-gradient(to left, var(--under, var(--paper)) 30%, transparent) right / 2rem 100% no-repeat local,
    linear-gradient(to left, var(--faint), transparent) right / .7rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(50rem, calc(100vw - 3.5rem));
  color: var(--soft); }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--faint); vertical-align: top;
  white-space: nowrap; }
details { margin-top: .6rem; } summary { cursor: pointer; } li { margin: .3rem 0; }
#ledger td:last-child { white-space: normal; min-width: 12rem; }
@media (max-width: 34rem) { body { padding-inline: .8rem; } figure { padding: .7rem .6rem; } }
@media print { details > * { display: block; } nav { display: none; } }
"""
# The browser itself is told to load nothing from anywhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def policy(script: str = "", *, connect: str = "") -> str:
    """What the browser is told to allow: the page's own style and, if there is one, this very script and one service.

    Args:
        script: the text of the page's only script.
        connect: where the script may send something, as a source of `connect-src`; nowhere if empty.
    """
    if not script:
        return POLICY
    digest = base64.b64encode(hashlib.sha256(script.encode("ascii")).digest()).decode("ascii")
    allowed = f"{POLICY}; script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"{allowed}; connect-src {connect}" if connect else allowed


def document(
    title: str,
    *,
    header: str,
    sections: Mapping[str, tuple[str, str]],
    opening: str = "",
    more_style: str = "",
    pages: Mapping[str, str] | None = None,
    here: str = "",
    script: str = "",
    connect: str = "",
) -> str:
    """The whole page.

    Args:
        title: plain text.
        header: HTML below the title.
        sections: by anchor, a plain title and the HTML below it; the anchors are also the page's index.
        opening: HTML before the first section.
        more_style: CSS rules after the common ones.
        pages: by file name, plain titles of pages that belong together; they are linked on top.
        here: the file name of this page among them.
        script: ASCII text of a script that runs when the page is there.
        connect: where that script may send something (`policy`).
    """
    body = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(words)}</h2>\n{inside}\n</section>'
        for name, (words, inside) in sections.items()
    )
    links = "".join(f'<li><a href="#{name}">{escape(words)}</a></li>' for name, (words, _) in sections.items())
    title = escape(title)
    tail = f"<script>{script}</script>\n" if script else ""
    icon = '<link rel="icon" href="data:,">\n' if script else ""  # else a browser asks the server for one
    whole = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy(script, connect=connect)}">
<title>{title}</title>
{icon}<style>{STYLE}{more_style}</style>
</head>
<body>
{_pages(pages or {}, here)}<header>
<h1>{title}</h1>
{header}
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main>
{opening}{body}
</main>
{tail}</body>
</html>
"""
    # Plain ASCII, so that no reader or writer can get the encoding wrong.
    return whole.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _pages(pages: Mapping[str, str], here: str) -> str:
    current = {here: ' aria-current="page"'}
    links = "".join(
        f'<li><a href="{escape(file)}"{current.get(file, "")}>{escape(title)}</a></li>' for file, title in pages.items()
    )
    return f'<nav class="pages" aria-label="Pages"><ul>{links}</ul></nav>\n' if links else ""


def table(columns: Sequence[str], rows: Sequence[Row], caption: str) -> str:
    """A table that scrolls by itself when it is too wide; all cells are plain text."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption><span>{escape(caption)}</span></caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def download(file: str, sheet: str) -> str:
    """A line with a link to a CSV file that lies in the page itself."""
    link = f'<a download="{escape(file)}" href="data:text/csv;charset=utf-8,{quote(sheet)}">{escape(file)}</a>'
    return f'<p class="small">Download: {link}</p>\n'


def figure(svg: str, caption: str, numbers: str, file: str, *, badge: str = "") -> str:
    """A drawing with its caption, its numbers behind a fold, and its file; everything given as HTML."""
    return (
        f'<figure>\n{badge}<div class="scroll">{svg}</div>\n<figcaption>{caption}</figcaption>\n'
        f"<details><summary>The numbers</summary>{numbers}</details>\n{file}</figure>"
    )
