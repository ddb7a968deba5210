"""The pages as text: whole, escaped, small, with a policy that allows their own script and nothing else."""

import base64
import csv
import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.pages.reader import Page
from tests.pages.site.models import HOSTILE, NAMES, moments, nodes, paper

from gcon.errors import InputError
from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.mechanisms.losses import loss_by_name
from gcon.pages.build import checked_service, site_pages
from gcon.pages.frame import PAGES, number, part
from gcon.privacy.attacker import best_advantage, best_true_positive_rate
from gcon.privacy.budget import NOTHING, Budget

ROOT = Path(__file__).parents[3]
SERVICES = {"none": {}, "own": {"service": ""}, "all": {"service": "", "me": True, "node_table": True}}
MAKERS = {"moments": moments, "paper": paper}
MOST_BYTES = 150_000


@pytest.fixture(scope="module", params=MAKERS)
def model(request):
    return MAKERS[request.param]()


def hostile(make):
    words = {"purpose": HOSTILE[1], "data_set": HOSTILE[0], "mechanism": HOSTILE[2]}
    return make(names=HOSTILE, **words)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("kind", ["plain", "hostile"])
@pytest.mark.parametrize("method", MAKERS)
def test_every_page_is_whole(method, kind, service):
    make = MAKERS[method]
    model, table = (make(), nodes()) if kind == "plain" else (hostile(make), nodes(HOSTILE))
    pages = site_pages(model, nodes=table, **SERVICES[service])
    assert list(pages) == list(PAGES)
    for name, text in pages.items():
        page = Page(text)
        assert text.isascii()
        assert len(text) < MOST_BYTES
        assert len(page.ids) == len(set(page.ids)), name
        assert set(page.references) <= set(page.ids), name
        assert not set(PAGES) - {link["href"] for link in page.all("a")}, name
        assert {link["href"] for link in page.all("a")} <= {*PAGES, *(f"#{place}" for place in page.ids)}
        assert [image for image in page.found if image[0] in ("img", "iframe", "object", "embed", "base")] == []
        assert not [key for _, attributes in page.found for key in attributes if key.startswith("on")]
        assert [link["href"][:19] for link in page.all("link")] == ["data:image/svg+xml;"]
        labelled = {label["for"] for label in page.all("label") if "for" in label}
        radios = {place["id"] for place in page.all("input") if "id" in place}
        fields = radios | {place["id"] for tag in ("select", "textarea") for place in page.all(tag)}
        assert fields <= labelled, name


@pytest.mark.parametrize("method", MAKERS)
def test_hostile_words_stay_words(method):
    pages = site_pages(hostile(MAKERS[method]), nodes=nodes(HOSTILE), service="", me=True, node_table=True)
    for text in pages.values():
        assert "<script>alert" not in text
        assert "<img" not in text
        page = Page(text)
        assert len(page.scripts) == 1
    assert all(word.replace("\u2028", "") in Page(pages["model.html"]).text.replace("\u2028", "") for word in HOSTILE)
    assert HOSTILE[0] in Page(pages["index.html"]).text


def test_the_policy_allows_this_script_alone(model):
    for options, connect in (
        ({}, None),
        ({"service": ""}, "'self'"),
        ({"service": "https://answers.example.org:8443/"}, "https://answers.example.org:8443"),
    ):
        for name, text in site_pages(model, **options).items():
            page = Page(text)
            (script,) = page.scripts
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert page.policy["default-src"] == "'none'"
            assert page.policy["script-src"] == f"'sha256-{digest}'"
            assert page.policy["form-action"] == page.policy["base-uri"] == "'none'"
            assert page.policy.get("connect-src") == (connect if name == "ask.html" else None)


@pytest.mark.parametrize("name", ["formulas.js", "promise.js", "ask.js"])
def test_scripts_cannot_end_their_element_nor_keep_anything(name):
    text = part(name)
    assert text.isascii()
    assert "</script" not in text.lower()
    assert "<!--" not in text
    for word in ("localStorage", "sessionStorage", "cookie", "indexedDB", "innerHTML", "insertAdjacent", "eval("):
        assert word not in text
    assert text.count("fetch(") == (name == "ask.js")


def test_the_promise_starts_at_the_release(model):
    page, budget = Page(site_pages(model)["index.html"]), model.receipt.budget
    (box,) = [place for place in page.all("input") if place.get("id") == "epsilon"]
    assert float(box["value"]) == budget.epsilon
    assert f"{50 * (1 + best_advantage(budget)):.1f} %" in page.text
    assert f"{100 * best_true_positive_rate(budget, 0.01):.1f} %" in page.text
    facts = json.loads(page.data["facts"])
    assert (facts["start"], facts["delta"]) == (budget.epsilon, budget.delta)
    dots = [place["class"] for place in page.all("circle") if "class" in place]
    assert len(dots) == 100
    assert dots.count("wrong") == 100 - math.ceil(50 * (1 + best_advantage(budget)))
    if model.method == "moments":
        assert facts["shape"] is None
        assert f"{gaussian_multiplier(budget.epsilon, budget.delta):.4g}" in page.text
    else:
        loss = loss_by_name("soft-margin", len(NAMES))
        assert facts["shape"]["curvatureSlopeBound"] == loss.curvature_slope_bound
        assert facts["shape"]["edgeInfluence"] == model.receipt.plan["edge_influence"]


@pytest.mark.parametrize(
    "make",
    [moments, lambda: moments(protect_edges=3), paper, lambda: paper(protect_edges=4)],
    ids=["one", "three", "paper", "four by the paper"],
)
def test_several_connections(make):
    """Every number of the slider is that of the exact curve, and the table says the same without a script."""
    model = make()
    page = Page(site_pages(model)["index.html"])
    rows, promised = json.loads(page.data["facts"])["several"], model.by_edges(range(1, 11))
    assert [row["edges"] for row in rows] == list(range(1, 11))
    for row in rows:
        budget = promised[row["edges"]]
        wanted = (0.0, 1.0, 1.0) if budget is None else (budget.epsilon, budget.delta, (1 + best_advantage(budget)) / 2)
        assert (row["epsilon"], row["delta"], row["right"]) == wanted
        assert f"{100 * row['right']:.1f} %" in page.text
    protected = model.receipt.plan.get("protect_edges", 1)
    (slider,) = [place for place in page.all("input") if place.get("id") == "edges"]
    assert slider["value"] == str(protected)
    words = f"any {protected} connections together" if protected > 1 else "one connection"
    assert f"what it can give away about {words}" in " ".join(page.text.split())
    assert (f"Any {protected} connections together are protected" in " ".join(page.text.split())) == (protected > 1)


def test_no_slider_without_a_promise():
    for model in (moments(math.inf), paper(seeded=True)):
        page = Page(site_pages(model)["index.html"])
        assert json.loads(page.data["facts"])["several"] == []
        assert "edges" not in page.ids


@pytest.mark.parametrize(
    "make",
    [lambda: moments(math.inf), lambda: moments(seeded=True), lambda: paper(seeded=True), lambda: paper(math.inf)],
    ids=["moments, no noise", "moments, seeded", "paper, seeded", "paper, no noise"],
)
def test_no_promise_is_said_on_top_of_every_page(make):
    model = make()
    pages = site_pages(model, nodes=nodes(), service="")
    for text in pages.values():
        before = text[: text.index("<section")]
        assert 'class="warn"' in before
        assert "carries no promise" in before
    assert 'class="heat"' not in pages["model.html"]
    assert "Not shown: the model keeps no promise" in Page(pages["model.html"]).text
    assert "at most" not in pages["index.html"][: pages["index.html"].index("<section")]


def test_a_promise_is_not_called_none(model):
    for text in site_pages(model, nodes=nodes(), service="").values():
        assert "carries no promise" not in text


def test_other_releases_from_the_same_edges_count(model):
    total = model.receipt.total
    text = " ".join(Page(site_pages(model)["index.html"]).text.split())
    assert (
        f"guesses right at most {50 * (1 + best_advantage(total)):.1f} % of the time (epsilon {total.epsilon:g} in all)"
        in text
    )
    alone = replace(model, receipt=replace(model.receipt, total=model.receipt.budget))
    assert "not the only release" not in site_pages(alone)["index.html"]
    opened = replace(model, receipt=replace(model.receipt, total=Budget(math.inf, 0.0)))
    assert "that keeps no promise, as the ledger knows" in site_pages(opened)["index.html"]


def test_a_release_that_reads_no_edge():
    model = moments()
    model = replace(model, receipt=replace(model.receipt, budget=NOTHING, total=NOTHING))
    pages = site_pages(model, nodes=nodes())
    assert "nothing in this model depends on any connection" in Page(pages["index.html"]).text.replace("\n", " ")
    assert json.loads(Page(pages["index.html"]).data["facts"])["start"] == 1.0


def test_budgets_beyond_the_slider_can_be_typed():
    page = Page(site_pages(moments(0.01))["index.html"])
    (box,) = [place for place in page.all("input") if place.get("id") == "epsilon"]
    assert (float(box["min"]), float(box["max"]), float(box["value"])) == (0.01, 16.0, 0.01)


def test_damaged_plans_of_the_papers_mechanism_are_not_computed_with():
    model = paper()
    for change in (
        {"num_features": 10**9},
        {"num_labelled": 10**400},
        {"ridge": "much"},
        {"loss": "other"},
        {"edge_influence": 0.0},
        {"noise_share": 1.0},
    ):
        changed = replace(model, receipt=replace(model.receipt, plan={**model.receipt.plan, **change}))
        page = Page(site_pages(changed)["index.html"])
        assert json.loads(page.data["facts"])["shape"] is None
        assert "does not hold the numbers" in page.text
    nothing = replace(model, receipt=replace(model.receipt, plan={}))
    assert "does not hold the numbers" in site_pages(nothing)["index.html"]


def test_ask_without_a_service_shows_calls_instead_of_a_form(model):
    text = site_pages(model)["ask.html"]
    page = Page(text)
    assert page.all("form") == page.all("input") == page.all("textarea") == []
    for words in (
        "No service is connected",
        "curl https://the-service.example/predict",
        "Authorization: Bearer",
        "urlopen",
    ):
        assert words in page.text
    assert page.data == {}


def test_ask_offers_what_the_service_has(model):
    little, much = (Page(site_pages(model, **SERVICES[kind])["ask.html"]) for kind in ("own", "all"))
    assert {form["id"] for form in little.all("form")} == {"predict-form"}
    assert {form["id"] for form in much.all("form")} == {"me-form", "predict-form"}
    assert "holds no connections" in little.text
    assert not [place for place in little.all("input") if place.get("name") == "kind"]
    assert len([place for place in much.all("input") if place.get("name") == "kind"]) == 2
    (token,) = [place for place in much.all("input") if place.get("id") == "token"]
    assert (token["type"], token["autocomplete"]) == ("password", "off")
    assert "name" not in token
    assert all(form["autocomplete"] == "off" and form["method"] == "post" for form in much.all("form"))
    assert json.loads(much.data["facts"]) == {
        "service": "",
        "numFeatures": 4,
        "somewhere": "https://the-service.example",
    }


def test_the_calls_for_programs_are_real(model):
    page = Page(site_pages(model, service="http://localhost:9", node_table=True)["ask.html"])
    code = page.text[page.text.index("import json") : page.text.index("What happens to")]
    compile(code.strip(), "ask", "exec")
    (body,) = set(re.findall(r"-d '(\{.*me.*\})'", page.text)) - {'{"node": "anna"}'}
    assert json.loads(body) == {"access": "own-edges", "me": {"id": "anna"}, "neighbours": [{"id": "bert"}]}


def test_nodes_of_the_training_are_said_to_be_looked_up():
    table, words = nodes(), "looked up in the model"
    others = replace(table, features=table.features + 0.001)
    assert words in site_pages(moments(), nodes=table)["model.html"]
    assert words not in site_pages(moments(), nodes=others)["model.html"]
    assert words not in site_pages(paper(), nodes=table)["model.html"]  # which reads features alone, always


def test_the_confusion_matrix_counts_the_test_nodes(model):
    table = nodes()
    page = Page(site_pages(model, nodes=table)["model.html"])
    cells = [int(number) for number in re.findall(r">(\d+)</td>", heat(site_pages(model, nodes=table)["model.html"]))]
    assert len(cells) == len(NAMES) ** 2
    assert sum(cells) == int(table.test_mask.sum())
    assert cells[0] + cells[4] + cells[8] == sum(cells)  # features show the class
    assert "100.0 % of the labels are" in page.text


def heat(text):
    return text[text.index('class="heat"') : text.index("</table>", text.index('class="heat"'))]


def test_classes_in_another_order_are_matched_by_name(model):
    table = nodes()
    turned = replace(table, labels=2 - table.labels, class_names=NAMES[::-1])
    assert heat(site_pages(model, nodes=turned)["model.html"]) == heat(site_pages(model, nodes=table)["model.html"])


def test_many_classes_still_make_a_small_page():
    for count, drawn in ((40, True), (41, False)):
        names = tuple(f"a class with a rather long name, number {place}" for place in range(count))
        text = site_pages(many(names), nodes=labelled(names))["model.html"]
        assert ('class="heat"' in text) == drawn
        assert len(text) < MOST_BYTES


def many(names):
    """A model of so many classes; what it answers does not matter."""
    answers = torch.full((900, len(names)), 1 / len(names))
    return replace(moments(), answers=answers, labels=torch.full((900,), -1), class_names=names)


def labelled(names):
    table = nodes(count=900)
    changed = replace(table, labels=torch.arange(900) % len(names), num_classes=len(names), class_names=names)
    assert changed.num_nodes == 900
    return changed


def test_why_there_is_no_matrix(model):
    table = nodes()
    empty = replace(table, test_mask=torch.zeros_like(table.test_mask))
    others = nodes(("cats", "dogs", "others"))
    for given, words in (
        (None, "no table of public nodes was given"),
        (empty, "fewer than 20 labelled test nodes"),
        (others, "classes that the model does not know"),
    ):
        text = site_pages(model, nodes=given)["model.html"]
        assert words in text
        assert 'class="heat"' not in text
    with pytest.raises(InputError, match="must have the 4 columns"):
        site_pages(model, nodes=replace(table, features=table.features[:, :3]))


def test_what_was_spent_is_on_the_model_page(model):
    page = Page(site_pages(model)["model.html"])
    assert f"so far{number(model.receipt.total.epsilon)}{model.receipt.total.delta!r}" in page.text
    assert repr(model.receipt.budget.delta) in page.text
    for sentence in model.statement().sentences:
        assert sentence in page.text


def test_equal_models_give_equal_pages(model):
    assert site_pages(model, nodes=nodes()) == site_pages(MAKERS[model.method](), nodes=nodes())


@pytest.mark.parametrize(
    "address",
    [
        "answers.example.org",
        "ftp://answers.example.org",
        "http://answers.example.org",
        "https://answers.example.org/there",
        "https://answers.example.org?x",
        "https://anna:secret@answers.example.org",
        "https://answers.example.org; script-src *",
        "https://answers.example.org'",
        "https://",
        "https://answers.example.org:port",
        "https://[::1",
        "https://b\u00fccher.example",
        "javascript:alert(1)",
    ],
)
def test_addresses_that_are_refused(address):
    with pytest.raises(InputError, match="service"):
        checked_service(address)


def test_addresses_that_are_taken():
    assert checked_service(None) is None
    assert checked_service("") == ""
    assert checked_service("https://Answers.example.org/") == "https://answers.example.org"
    assert checked_service("http://localhost:8000") == "http://localhost:8000"
    assert checked_service("http://[::1]:8000/") == "http://[::1]:8000"


def test_measured_rows_are_rows_of_the_committed_table():
    ours = part("measured.csv").splitlines()
    committed = (ROOT / "docs/results/beyond/beyond.csv").read_text().splitlines()
    assert ours[0] == committed[0]
    places = [committed.index(line) for line in ours]
    assert places == sorted(set(places))
    wanted = {
        tuple(row[:4])
        for row in csv.reader(committed[1:])
        if (
            row[1] in ("moments", "gcon", "moments-without-edges", "self-training", "encoder-one-hop", "mlp")
            and row[3] in ("own-edges", "none")
        )
        or (row[1] == "gcn" and row[3] == "full")
    }
    assert {tuple(row[:4]) for row in csv.reader(ours[1:])} == wanted


def test_every_measured_number_is_on_the_page(model):
    page = Page(site_pages(model)["index.html"])
    private = {"moments": "moments", "paper": "gcon"}[model.method]
    rows = [
        row for row in csv.DictReader(part("measured.csv").splitlines()) if row["method"] in (private, "self-training")
    ]
    assert len(rows) > 100
    for row in rows:
        assert f"{100 * float(row['mean']):.2f} \u00b1 {100 * float(row['standard error']):.2f}" in page.text
    told = {
        (graph, method, access, epsilon): (mean, error)
        for graph, method, access, epsilon, mean, error in facts(page)["rows"]
    }
    for row in rows:
        if row["epsilon"] != "inf":
            epsilon = None if row["epsilon"] == "any" else float(row["epsilon"])
            mean, error = told[row["graph"], row["method"], row["access"], epsilon]
            assert (mean, error) == (float(row["mean"]), float(row["standard error"]))


def facts(page):
    return json.loads(page.data["facts"])


def test_where_it_does_not_beat_what_costs_nothing():
    text = " ".join(Page(site_pages(moments())["index.html"]).text.split())
    assert "Answers that read own connections: it beats the best control in 90 of 115 measurements." in text
    assert "At no measured epsilon on: Cora-ML; CiteSeer; Actor;" in text
    text = " ".join(Page(site_pages(paper())["index.html"]).text.split())
    assert (
        "Answers that read own connections: it beats the best control in 0 of 115 measurements. On none of the 23 graphs."
        in text
    )


def test_budget_in_the_receipt_and_a_typical_one_differ():
    page = Page(site_pages(moments(3.0, 1e-6))["index.html"])
    assert facts(page)["delta"] == 1e-6
    assert f"{50 * (1 + best_advantage(Budget(3.0, 1e-6))):.1f} %" in page.text
