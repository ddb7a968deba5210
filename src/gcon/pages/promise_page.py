"""index.html: what the model can give away about one connection, with a dial for epsilon, and what accuracy costs."""

from __future__ import annotations

import math
from html import escape

from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.methods.model import Model
from gcon.methods.predictions import why_no_promise
from gcon.pages.costs import accuracy_card, accuracy_table, comparisons, measured_facts
from gcon.pages.facts import HIGHEST, LOWEST, Dial, data_block, dial_of
from gcon.pages.frame import part, site_page
from gcon.pages.site_words import LIMITS, items, number, percent
from gcon.privacy.attacker import best_advantage, best_true_positive_rate
from gcon.privacy.budget import NOTHING
from gcon.privacy.receipt import Receipt

FALSE_ALARMS = 0.01
STEPS = 1000  # of the slider, from LOWEST to HIGHEST by equal factors


def promise_page(model: Model) -> str:
    """The page.

    Privacy:
        Reads the released model's receipt, which is public, and committed measurements of public graphs.
    """
    dial = dial_of(model)
    sections = {
        "dial": ("Turn the dial", _dial(model, dial)),
        "noise": ("How much noise that takes", _noise(model, dial)),
        "controls": ("Where it does not beat what costs nothing", comparisons(model)),
        "limits": ("What is not promised", items(LIMITS)),
        "exactly": ("The promise, word for word", items(model.statement().sentences)),
    }
    return site_page(
        "index.html",
        "What this model can tell about your connections",
        header=f"""<p>A model was trained on a graph: people, or other nodes, and the connections between them. Anybody may
have the model. This page says what it can give away about one connection. Data set
'{escape(model.receipt.data_set)}', released {escape(model.receipt.time[:10])}.</p>""",
        opening=_in_short(model, dial),
        sections=sections,
        script=part("formulas.js") + part("promise.js"),
    )


def _in_short(model: Model, dial: Dial) -> str:
    reason = why_no_promise(model.receipt)
    if reason is not None:
        return (
            '<div class="verdict" role="note"><p class="warn"><strong>This model carries no promise:</strong> '
            f"{escape(reason)}. Somebody who studies it may find out for certain whether two people are connected. What "
            "follows is what a promise would mean, not what this model keeps.</p></div>\n"
        )
    if model.receipt.budget == NOTHING:
        return (
            '<div class="verdict" role="note"><p><strong>In short:</strong> nothing in this model depends on any '
            "connection, so it cannot tell anything about yours. The dial shows what it would be otherwise.</p></div>\n"
        )
    right = percent((1 + best_advantage(dial.budget)) / 2)
    return (
        '<div class="verdict" role="note"><p><strong>In short:</strong> suppose that somebody wants to know whether you and '
        "one other person are connected, and cannot do better than toss a coin. However they study this model, with any "
        f"computer and whatever they know about everybody else, they guess right <strong>at most {right} of the "
        f"time</strong>. The coin is right 50 % of the time. This is what epsilon = {number(dial.budget.epsilon)} means, the "
        f"number that was chosen for this model.</p>{_all_releases(model.receipt)}</div>\n"
    )


def _all_releases(receipt: Receipt) -> str:
    """What all releases from these edges allow together, where there were others."""
    if receipt.total == receipt.budget:
        return ""
    if math.isinf(receipt.total.epsilon):
        return (
            '<p class="warn">Something else was taken from the same connections that keeps no promise, as the ledger knows. '
            "Whoever has that may know more.</p>"
        )
    right = percent((1 + best_advantage(receipt.total)) / 2)
    return (
        "<p>This was not the only release from these connections. Somebody who has all of them guesses right at most "
        f"{right} of the time (epsilon {number(receipt.total.epsilon)} in all).</p>"
    )


def _dial(model: Model, dial: Dial) -> str:
    epsilon = number(dial.budget.epsilon)
    own = "this model's own" if dial.is_own else "an example"
    if dial.is_own and not model.receipt.keeps_promise:
        own = "the number that was asked for, which this model does not keep"
    return f"""<p>Epsilon is the privacy budget: the smaller, the less anybody can learn, and the more noise there is in what
the model was trained on. Move the slider (arrow keys work too) or type a number. It starts at {own}.</p>
<noscript><p class="warn">Without scripts the dial does not move; what is shown is for its start.</p></noscript>
<div class="dial" role="group" aria-label="The dial">
<label for="slider">epsilon, from {LOWEST:g} to {HIGHEST:g}</label>
<input id="slider" type="range" min="0" max="{STEPS}" value="{_place(dial.budget.epsilon)}" autocomplete="off"
 aria-describedby="said">
<label for="epsilon" class="visually-hidden">epsilon as a number</label>
<input id="epsilon" type="number" min="{number(dial.lowest)}" max="{number(dial.highest)}" step="any"
 value="{epsilon}" inputmode="decimal"
 autocomplete="off" aria-describedby="epsilon-problem">
<button id="back" type="button" title="Back to {epsilon}">Back to {epsilon}</button>
<p id="epsilon-problem" class="problem" role="alert"></p>
</div>
<p id="said" class="visually-hidden" role="status"></p>
<div class="two">
{_attacker(dial)}
{accuracy_card(model)}
</div>
{accuracy_table(model)}
{data_block("facts", _facts(model, dial))}"""


def _place(epsilon: float) -> int:
    """Where the slider stands."""
    share = math.log(epsilon / LOWEST) / math.log(HIGHEST / LOWEST)
    return round(STEPS * min(1.0, max(0.0, share)))


def _attacker(dial: Dial) -> str:
    advantage = best_advantage(dial.budget)
    right, found = (1 + advantage) / 2, best_true_positive_rate(dial.budget, FALSE_ALARMS)
    shown = math.ceil(100 * right - 1e-9)
    kinds = ["luck"] * 50 + ["learnt"] * (shown - 50) + ["wrong"] * (100 - shown)
    dots = "".join(
        f'<circle class="{kind}" cx="{10 + 20 * (place % 20)}" cy="{10 + 20 * (place // 20)}" r="7"/>'
        for place, kind in enumerate(kinds)
    )
    return f"""<div class="card" role="group" aria-labelledby="attacker-title">
<h3 id="attacker-title">What an attacker can learn</h3>
<p>About one connection, guesses are right at most</p>
<p class="big"><output id="right" for="slider epsilon" aria-live="off">{percent(right)}</output></p>
<p class="small">of the time; a coin: 50 %. Of 100 such guesses:</p>
<svg id="dots" viewBox="0 0 400 100" role="img" aria-labelledby="dots-said">{dots}</svg>
<p id="dots-said" class="small legend"><span class="key luck"></span>50 right by luck,
<span class="key learnt"></span>up to <span id="learnt">{shown - 50}</span> more because of the model,
<span class="key wrong"></span><span id="wrong">{100 - shown}</span> wrong</p>
<p>An attacker who wants to be sure, with 1 false alarm in 100, recognises of all connections at most</p>
<p class="big"><output id="found" for="slider epsilon" aria-live="off">{percent(found)}</output></p>
<div class="bar" aria-hidden="true"><span id="found-bar" style="width: {100 * found:.3f}%"></span><i></i></div>
<p class="small">The mark is blind guessing: 1 %. Best advantage (right finds less false alarms, 0 is blind, 1 is certain):
<output id="advantage" for="slider epsilon" aria-live="off">{advantage:.4f}</output>; delta = {dial.budget.delta:g}.</p>
</div>"""


def _facts(model: Model, dial: Dial) -> dict[str, object]:
    """What the script needs: public numbers."""
    return {
        "start": dial.budget.epsilon,
        "delta": dial.budget.delta,
        "low": LOWEST,
        "high": HIGHEST,
        "steps": STEPS,
        "falseAlarms": FALSE_ALARMS,
        "shape": dial.shape,
        **measured_facts(model.method),
    }


def _noise(model: Model, dial: Dial) -> str:
    if model.method == "moments":
        multiplier = gaussian_multiplier(dial.budget.epsilon, dial.budget.delta)
        return f"""<p>This model was made from sums over all connections, released once with noise. The noise on each sum is,
at the dial's epsilon, at least</p>
<p class="big"><output id="multiplier" for="slider epsilon" aria-live="off">{multiplier:.4g}</output></p>
<p>times as large as what one connection can change. Above 1 a single connection drowns in it; sums over thousands of
connections still stand out. {_own_noise(model)}</p>"""
    if dial.shape is None:
        return "<p>The receipt of this model does not hold the numbers that its noise could be computed from.</p>"
    rows = {
        "ridge": "ridge, how strongly the weights are pulled towards zero",
        "extraRidge": "extra ridge that the proof asks for",
        "noiseRate": "noise rate (a small rate is much noise)",
        "noiseLength": "length of the noise of one class, hardly ever exceeded",
    }
    body = "".join(
        f'<tr><th scope="row">{escape(words)}</th><td><output id="theorem-{name}" for="slider epsilon" aria-live="off">'
        "</output></td></tr>"
        for name, words in rows.items()
    )
    return f"""<p>This model is the exact solution of a problem into which noise was mixed, by Theorem 1 of the paper. With this
release's own public numbers ({dial.shape["numLabelled"]:.0f} labelled nodes, {dial.shape["numFeatures"]:.0f} columns,
{dial.shape["numClasses"]:.0f} classes, and a connection that can move all rows together by {dial.shape["edgeInfluence"]:.4g}),
the theorem asks at the dial's epsilon for:</p>
<table id="theorem"><caption class="small">From its formulas, with at least this release's ridge and the default margin.</caption>
<thead><tr><th scope="col">what</th><th scope="col">at the dial's epsilon</th></tr></thead><tbody>{body}</tbody></table>
<p>{_own_noise(model)}</p>"""


def _own_noise(model: Model) -> str:
    """What the receipt says about the noise that was really added."""
    if not model.receipt.keeps_promise:
        return "This model itself keeps no promise, whatever its noise."
    plan = model.receipt.plan
    distance, rate, ridge = (plan.get(name) for name in ("distance", "noise_rate", "ridge"))
    if isinstance(distance, int | float) and distance > 0:
        return f"The receipt of this model says: {1 / distance:.6g} times."
    if isinstance(rate, int | float) and isinstance(ridge, int | float):
        return f"The receipt of this model says: noise rate {rate:.6g}, ridge {ridge:.6g}."
    return "The receipt of this model names no noise."
