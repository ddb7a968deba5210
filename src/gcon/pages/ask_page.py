"""ask.html: a form for the owner of a node. Nothing is sent before a button is pressed; a token is never stored."""

from __future__ import annotations

import json
from html import escape

from gcon.methods.model import Model
from gcon.methods.predictions import why_no_promise
from gcon.pages.facts import data_block
from gcon.pages.frame import part, site_page

TOKEN = "gcon_..."
SOMEWHERE = "https://the-service.example"


def ask_page(model: Model, *, service: str | None, me: bool, node_table: bool) -> str:
    """The page.

    Args:
        model: the released model.
        service: "" for the page's own origin, another origin, or None where there is no service.
        me: whether the service answers from edges that it holds, for a token.
        node_table: whether it knows nodes by their id.

    Privacy:
        Reads public facts of the released model.
    """
    sections = {}
    if service is None:
        sections["service"] = ("No service is connected", _NO_SERVICE)
    else:
        sections["me"] = ("With a token", _ME if me else _NO_ME)
        sections["predict"] = ("With what you know yourself", _predict(model, node_table=node_table))
    sections["programs"] = ("For programs", _programs(service, model.encoder.num_features, node_table=node_table))
    sections["sent"] = ("What happens to what you send", _SENT)
    facts = {
        "service": service,
        "numFeatures": model.encoder.num_features,
        "somewhere": SOMEWHERE,
    }
    return site_page(
        "ask.html",
        "Ask the model about yourself",
        header=f"""<p>The model guesses one of {len(model.class_names)} classes for you: from your own features and, if you
like, those of the people you are connected to. Such an answer is for you alone.</p>
{_warning(model)}""",
        opening="" if service is None else data_block("facts", facts),
        sections=sections,
        script="" if service is None else part("ask.js"),
        connect="" if service is None else service or "'self'",
    )


def _warning(model: Model) -> str:
    reason = why_no_promise(model.receipt)
    return "" if reason is None else f'<p class="warn">This model carries no promise: {escape(reason)}.</p>'


_NO_SERVICE = """<p>These pages were made without the address of a service, so there is no form here: it could not work. Whoever
runs one can be asked by a program, as below; <code>gcon serve</code> starts one, with these pages and the form in it.</p>"""

_SENT = """<ul><li>Nothing leaves this page before you press a button, and then only what is in that form.</li>
<li>What you know yourself is used for the answer and stored nowhere, nor is the answer.</li>
<li>With a token the service notes that you were answered and when. It does not keep the answer.</li>
<li>A token is a password. This page keeps it in its field only: not on this device, not in an address, and it is gone when
the page is closed.</li>
<li>An answer that was computed from your connections may give something about them away to whoever sees it. Share it only
if you would tell them.</li></ul>"""

_NO_ME = (
    """<p>This service holds no connections, so there are no tokens. It answers from what you tell it, below.</p>"""
)

_ME = """<p>The operator knows your connections and gave you a token. The answer is computed from the connections of your node
alone.</p>
<form id="me-form" method="post" autocomplete="off" novalidate>
<div class="field"><label for="token">Token</label><p class="small" id="token-hint">Starts with gcon_ and has 48 characters.</p>
<div class="row"><input id="token" type="password" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="200"
 aria-describedby="token-hint token-problem" disabled>
<button id="show-token" type="button" aria-pressed="false" aria-controls="token" disabled>Show</button></div>
<p class="problem" id="token-problem"></p></div>
<div class="field"><label for="node">Your node's id</label>
<input id="node" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" aria-describedby="node-problem" disabled>
<p class="problem" id="node-problem"></p></div>
<button class="main" type="submit" disabled>Ask with my token</button>
</form>
<div id="me-answer" class="answer" role="status" aria-live="polite"></div>"""


def _predict(model: Model, *, node_table: bool) -> str:
    width = model.encoder.num_features
    numbers = f"{width} numbers, separated by commas"
    only = (
        ""
        if node_table
        else '<p class="small">This service has no table of nodes, so people are given by their features.</p>'
    )
    kinds = "" if not node_table else _KINDS
    what = "an id, or " if node_table else ""
    return f"""<p>You know your connections yourself. Nobody has to hold them: tell the service who you are and who your
neighbours are, and it forgets both after the answer.</p>
<form id="predict-form" method="post" autocomplete="off" novalidate>
{kinds}{only}
<div class="field"><label for="person">You</label><p class="small" id="person-hint">One line: {what}{numbers}.</p>
<textarea id="person" rows="2" autocomplete="off" autocapitalize="off" spellcheck="false"
 aria-describedby="person-hint person-problem"
 disabled></textarea><p class="problem" id="person-problem"></p></div>
<fieldset><legend>The answer may read</legend>
<label><input type="radio" name="access" value="own-edges" checked autocomplete="off" disabled> my connections</label>
<label><input type="radio" name="access" value="none" autocomplete="off" disabled> no connection</label></fieldset>
<div class="field"><label for="neighbours">Your neighbours</label>
<p class="small" id="neighbours-hint">One line each, written like yours. None is fine, too.</p>
<textarea id="neighbours" rows="4" autocomplete="off" autocapitalize="off" spellcheck="false"
 aria-describedby="neighbours-hint neighbours-problem" disabled></textarea><p class="problem" id="neighbours-problem"></p></div>
<button class="main" type="submit" disabled>Ask with what I wrote</button>
</form>
<div id="predict-answer" class="answer" role="status" aria-live="polite"></div>
<noscript><p class="warn">The form needs scripts. Without them, use a program as below.</p></noscript>"""


_KINDS = """<fieldset><legend>A line is</legend>
<label><input type="radio" name="kind" value="id" checked autocomplete="off" disabled> an id</label>
<label><input type="radio" name="kind" value="features" autocomplete="off" disabled> features</label></fieldset>"""


def _programs(service: str | None, width: int, *, node_table: bool) -> str:
    place = service or SOMEWHERE
    zeros = [0.0] * min(width, 3)
    person: dict[str, object] = {"id": "anna"} if node_table else {"features": zeros}
    other: dict[str, object] = {"id": "bert"} if node_table else {"features": zeros}
    body = json.dumps({"access": "own-edges", "me": person, "neighbours": [other]})
    note = (
        "" if node_table or width <= 3 else f" Features are shortened here: the model takes {width} numbers a person."
    )
    kind = "-H 'Content-Type: application/json'"
    curl = f"curl {place}/predict \\\n  {kind} \\\n  -d '{body}'"
    owner = f"curl {place}/me \\\n  -H 'Authorization: Bearer {TOKEN}' \\\n  {kind} \\\n  -d '{{\"node\": \"anna\"}}'"
    python = f'''import json
from urllib.request import Request, urlopen

question = {body}
request = Request(
    "{place}/predict",
    data=json.dumps(question).encode(),
    headers={{"Content-Type": "application/json"}},
)
answer = json.load(urlopen(request))
print(answer["label"], answer["probabilities"])'''
    token_said = "With a token, where the service holds the connections:"
    return (
        f"<p>What the form does, in a shell.{escape(note)}</p>{_code('Shell: predict', curl)}<p>{token_said}</p>"
        f"{_code('Shell: me', owner)}<p>In Python:</p>{_code('Python', python)}"
    )


def _code(title: str, text: str) -> str:
    """A block that scrolls by itself, also by keyboard."""
    return (
        f'<pre class="scroll" tabindex="0" role="region" aria-label="{escape(title)}"><code>{escape(text)}</code></pre>'
    )
