"""The report of one model: whole, made of public things only, honest about the control, and the same wherever it is shown."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tests.pages.reader import Page
from tests.pages.site.models import HOSTILE, moments, nodes, paper

import gcon
from gcon.mechanisms.counts import geometric_deviation
from gcon.pages import model_report as made
from gcon.pages.build import site_pages
from gcon.pages.model_report import NO_HELP, NOT_COMPARED, NOT_MEASURED, model_report
from gcon.pages.scored_nodes import class_title
from gcon.pages.shares import PAID_PURPOSE, paid_share
from gcon.privacy.attacker import right_at_most
from gcon.privacy.budget import NOTHING, Budget
from gcon.privacy.ledger import Kind, LedgerEntry, Outcome, Request

SECTIONS = ["published", "accuracy", "promise", "noise", "confusion", "calibration", "ledger", "about", "limits"]


@pytest.fixture
def free(monkeypatch):
    """A control that is right about every second test node; training one takes a second."""
    taught = []

    def learn(nodes, part, seed):
        taught.append((part, seed))
        return torch.arange(int(nodes.test_mask.sum())) % 2 == 0

    monkeypatch.setattr(made, "_control", learn)
    return taught


def words(report):
    return " ".join(Page(report.html).text.split())


def entry(model, **changes):
    request = Request(
        kind=Kind.RELEASE,
        mechanism="noisy count",
        purpose=changes.pop("purpose", PAID_PURPOSE),
        cost=changes.pop("cost", Budget(0.5, 0.0)),
        plan={},
        randomness="operating system",
    )
    bought = {"micro_f1": 0.9, "standard_deviation": 0.03, "epsilon": 0.5, "nodes": 100, "model": model.receipt.time}
    parts = {"number": 1, "time": "2030-01-03T00:00:00", "data_set": "friends", "outcome": Outcome.RELEASED}
    return LedgerEntry(**parts, request=request, result=changes.pop("result", bought))


@pytest.mark.parametrize("make", [moments, paper])
def test_the_page_is_whole_and_asks_nothing_from_elsewhere(make, free):
    report = model_report(make(), nodes())
    page = Page(report.html)
    assert [section["id"] for section in page.all("section")] == SECTIONS
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    assert report.html.isascii()
    assert "http" not in report.html.replace("http-equiv", "")
    assert not [tag for tag, _ in page.found if tag in ("script", "img", "iframe")]
    assert report.publishable
    assert report.html.count('class="warn"') == 0


def test_hostile_words_stay_words(free):
    model = moments(names=HOSTILE, purpose=HOSTILE[1], data_set=HOSTILE[0])
    report = model_report(model, nodes(HOSTILE), name=HOSTILE[1], entries=[entry(model, purpose=HOSTILE[1])])
    assert "<script" not in report.html
    assert "<img" not in report.html
    assert "<script" not in report._repr_html_().replace("&lt;", "<").split('srcdoc="')[0]


def test_the_control_stands_beside_the_model(free):
    model, table = moments(), nodes()
    report = model_report(model, table)
    assert free == [("test", 0)]
    assert "reaches 50.0 %, 50.0 points less (standard error 9.1): the difference is what the budget bought." in words(
        report
    )
    level = [f"{tile} {share}" for tile, share in (("Private model", 100), ("Control, no edges", 50))]
    assert all(each in words(report) for each in level)
    assert "± 0.0" not in words(report)
    other = model_report(model, replace(table, features=table.features + 1))  # not the nodes of the training
    assert "Control, no edges" not in words(other)
    assert "No accuracy: no table of public nodes was given (--nodes FILE" in words(model_report(model))
    assert "Control, no edges" not in words(model_report(model, table, control_seed=None))
    assert len(free) == 1


@pytest.mark.parametrize(("right", "meaning"), [(1.0, "may be chance"), (0.0, "bought nothing here")])
def test_the_headline_says_when_the_budget_bought_nothing(right, meaning, monkeypatch):
    count = int(nodes().test_mask.sum())
    monkeypatch.setattr(made, "_control", lambda *_: torch.ones(count, dtype=torch.bool))
    model = moments()
    answers = model.answers if right else model.answers.flip(1)
    report = model_report(replace(model, answers=answers), nodes())
    assert meaning in report.headline[1]


def test_the_real_control_reads_public_nodes_only():
    right = made._control(nodes(), "validation", 0)
    assert right.shape == (30,)
    assert right.double().mean() > 0.5


def test_own_edges_only_where_somebody_paid(free):
    model = moments()
    model = replace(model, right=700, asked=1000)  # the count of its own
    own = paid_share(model)
    assert own.value == 0.7
    noise = geometric_deviation(model.receipt.plan["answer_epsilon"] / 2) / 1000
    assert own.deviation == pytest.approx(math.hypot(noise, math.sqrt(0.7 * 0.3 / 1000)), rel=1e-3)
    assert NOT_COMPARED in words(model_report(model, nodes()))
    few = replace(model, right=70, asked=100)
    assert paid_share(few) is None  # 57 of 100 is the noise alone

    uncounted = replace(model, right=None, asked=0)
    assert NOT_MEASURED in words(model_report(uncounted, nodes()))
    assert "With own edges" not in words(model_report(uncounted, nodes()))
    useless = replace(model, own_edges=False)
    assert NO_HELP in words(model_report(useless, nodes()))
    assert NOT_MEASURED in words(model_report(paper(), nodes()))

    bought = paid_share(uncounted, [entry(model)])
    assert (bought.value, bought.nodes[:14]) == (0.9, "100 test nodes")
    noisier = entry(model, result={**entry(model).result, "micro_f1": 0.4, "standard_deviation": 0.3})
    assert paid_share(uncounted, [entry(model), noisier]) == bought  # what was bought last is not always the best
    assert paid_share(model, [noisier]) == own
    other = entry(model, result={**entry(model).result, "model": "another time"})
    assert paid_share(uncounted, [other]) is None
    assert paid_share(uncounted, [entry(model, purpose="something else")]) is None
    bare = entry(model)
    for request in (
        replace(bare.request, cost=Budget(math.inf, 0.0)),
        replace(bare.request, randomness="seeded: no promise"),
    ):
        assert paid_share(uncounted, [replace(bare, request=request)]) is None  # nothing that may be published
    assert paid_share(uncounted, [replace(bare, outcome=Outcome.RESERVED)]) is None


def test_a_count_that_noise_made_more_than_all_is_said_as_it_was_released(free):
    model = replace(moments(), right=1034, asked=1000)
    own, report = paid_share(model), model_report(model, nodes())
    assert (own.value, own.drawn, own.high) == (1.034, 1.0, 1.0)
    assert "about 103 % ± " in report.headline[-1]
    assert (
        "(1000 validation nodes, 1034 of them right (more than all: noise), by a noisy count that was"
        in report.headline[-1]
    )
    assert "width: 103" not in report.html
    low = paid_share(replace(model, right=-12))
    assert (low.drawn, low.low) == (0.0, 0.0)
    assert "-12 of them right (less than none: noise)" in low.nodes
    assert "noise)" not in paid_share(replace(model, right=1000)).nodes


def test_spending_is_told_and_diagnostics_are_not(free):
    model = moments()
    lines = [entry(model, purpose="the first"), entry(model, purpose="only looking", cost=NOTHING, result=None)]
    said = words(model_report(model, nodes(), entries=lines))
    assert "the first" in said
    assert "only looking" not in said


def test_training_nodes_are_looked_up_and_new_ones_are_not(free):
    """The lookup knows its table, and the features-only part is worse here: the page must not sell the one as the other."""
    model, table = moments(), nodes()
    blind = replace(model, encoder=replace(model.encoder, head_weight=-model.encoder.head_weight))
    said = words(model_report(blind, table))
    assert "Private model: nodes of the training table, looked up in the model (none)100 %" in said
    assert "Private model: new nodes, from their features alone (none)0 %" in said
    assert "taught by its answers" in said
    others = words(model_report(blind, replace(table, features=table.features + 0.001)))
    assert "Private model: any node, from its features alone (none)0 %" in others
    assert "looked up" not in others


def test_what_else_was_taken_stands_beside_the_promise(free):
    model = moments()
    only = replace(model, receipt=replace(model.receipt, total=model.receipt.budget))
    own = entry(model, cost=model.receipt.budget, purpose="this one", result=None)
    assert "the only release" not in words(model_report(only, nodes(), entries=[own]))
    assert "epsilon 2 in all" in words(model_report(model, nodes()))  # by its receipt
    assert "epsilon 3 in all" in words(model_report(only, nodes(), entries=[own, own, own]))
    bare = entry(model, cost=Budget(math.inf, 0.0), purpose="bare values", result=None)
    report = model_report(only, nodes(), entries=[own, bare])
    assert report.html.count('class="warn"') == 1
    assert "keeps no promise, as the ledger knows" in words(report)


@pytest.mark.parametrize("model", [moments(seeded=True), paper(math.inf)], ids=["seeded", "no noise"])
def test_without_a_promise_it_is_for_the_operator(model, free):
    report = model_report(model, nodes())
    assert not report.publishable
    assert report.html.count('class="warn"') == 1
    assert "not for publication" in words(report)
    assert "This whole page" not in words(report)


def test_nodes_that_cannot_be_scored_are_named(free):
    table = nodes()
    none = torch.zeros_like(table.test_mask)
    assert "no table of public nodes" in words(model_report(moments()))
    few = replace(table, test_mask=none, validation_mask=none)
    assert "fewer than 20 labelled test or validation nodes" in words(model_report(moments(), few))
    others = replace(table, class_names=("cats", "dogs & owls", "newts"))
    assert "classes that the model does not know" in words(model_report(moments(), others))
    only_validation = model_report(moments(), replace(table, test_mask=none), control_seed=None)
    assert "30 validation nodes" in only_validation.headline[0]


def test_classes_that_are_numbers_are_called_classes(free):
    report = model_report(moments(names=(0, 1, 2)), nodes((0, 1, 2)))
    assert "class 0" in words(report)
    assert [class_title(name) for name in ("cats", 3, "3", True)] == ["cats", "class 3", "class 3", "class True"]


def test_an_estimator_makes_the_same_page_from_what_people_hold():
    graph = gcon.datasets.social_circles(200, num_classes=2, seed=1)
    table = graph.nodes
    model = gcon.GCON(epochs=5).fit(graph)
    one = model.report(graph, name="Circles")
    labels, masks = table.labels.numpy(), {part: getattr(table, part) for part in gcon.files.inputs.MASKS}
    other = model.report(table.features.numpy(), labels, **masks, name="Circles")
    assert one.html == other.html
    data = SimpleNamespace(x=table.features, y=table.labels, edge_index=torch.zeros(2, 1, dtype=torch.int64))
    data.train_mask, data.val_mask, data.test_mask = masks.values()
    data.edge_weight = torch.ones(1)  # `fit` would refuse it; here nobody reads edges
    assert model.report(data, name="Circles").html == one.html
    assert "Circles: what the model does" in one.html
    assert repr(one) == "\n".join(one.headline)
    assert one._repr_html_().startswith("<iframe")
    assert "no table of public nodes" in model.report().html


def test_a_report_is_saved_whole(tmp_path, free):
    report = model_report(moments(), nodes())
    path = report.save(tmp_path / "report.html")
    assert path.read_text() == report.html
    assert path.stat().st_mode & 0o777 == 0o644
    secret = model_report(moments(seeded=True), nodes()).save(tmp_path / "secret.html")
    assert secret.stat().st_mode & 0o777 == 0o600


def test_an_estimators_ledger_is_shown_if_it_is_this_data_sets():
    graph, ledger = gcon.datasets.social_circles(100, num_classes=2, seed=1), gcon.MemoryLedger("circles")
    model = gcon.GCON(epochs=5, ledger=ledger).fit(graph)
    assert "All spending so far" in model.report().html
    other = gcon.GCON.from_model(model.model_, ledger=gcon.MemoryLedger("others"))
    assert "All spending so far" not in other.report().html


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_what_is_said_of_two_and_ten_edges_is_what_the_curve_says(epsilon, free):
    """At epsilon 4 two edges are far from half as well hidden as one: the words are the numbers."""
    model = moments(epsilon)
    rights = {edges: f"{100 * right_at_most(budget):.1f} %" for edges, budget in model.by_edges((1, 2, 10)).items()}
    pages = [
        words(model_report(model, nodes())),
        *(" ".join(Page(each).text.split()) for each in site_pages(model).values()),
    ]
    told = (
        f"a guess about one is right at most {rights[1]} of the time, about two together at most {rights[2]} of the time, "
        f"about ten at most {rights[10]} of the time."
    )
    assert [told in page for page in pages] == [True, True, False, True]  # the form to ask has no such list
    assert not any("half as well" in page for page in pages)
    seeded = " ".join(Page(site_pages(moments(epsilon, seeded=True))["model.html"]).text.split())
    assert "One connection is protected, several together less. A person's whole circle" in seeded
