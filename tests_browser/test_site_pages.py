"""The site in a real browser: readable everywhere, silent towards the network, its numbers those of Python."""

import math
import re
from itertools import product

import pytest
from playwright.sync_api import expect
from tests.pages.site.models import HOSTILE, moments, nodes, paper
from tests_browser.checker import opened, page_problems

from gcon.mechanisms.gaussian_curve import gaussian_multiplier
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.objective_plan import make_plan
from gcon.pages import measured
from gcon.pages.build import site_pages
from gcon.pages.dial import dial_of
from gcon.pages.frame import PAGES, part
from gcon.pages.write import write_site
from gcon.privacy.attacker import best_advantage, best_true_positive_rate
from gcon.privacy.budget import Budget

WIDTHS = (1200, 390, 360)
MODELS = {
    "moments": moments,
    "several": lambda: moments(protect_edges=3),
    "paper": paper,
    "hostile": lambda: moments(names=HOSTILE, purpose=HOSTILE[1], data_set=HOSTILE[0]),
    "seeded": lambda: paper(seeded=True),
    "without noise": lambda: moments(math.inf),
}


@pytest.fixture(scope="session")
def sites(tmp_path_factory):
    """Folders of pages by the kind of model; the form is there, for a service at the pages' own address."""
    place = tmp_path_factory.mktemp("sites")
    for kind, make in MODELS.items():
        model = make()
        pages = site_pages(model, nodes=nodes(model.class_names), service="", me=True, node_table=True)
        write_site(pages, place / kind)
    return place


def open_page(browser, folder, name, **options):
    return opened(browser, (folder / name).absolute().as_uri(), **options)


# ---- reading


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("kind", ["moments", "several", "paper"])
def test_pages_can_be_read(browser, sites, kind, name, width, dark):
    with open_page(browser, sites / kind, name, width=width, dark=dark) as (page, told):
        assert page_problems(page, told, width=width, dark=dark, links=PAGES) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("kind", ["hostile", "seeded", "without noise"])
def test_odd_models_can_be_read(browser, sites, kind, name):
    with open_page(browser, sites / kind, name, width=390) as (page, told):
        assert page_problems(page, told, width=390, dark=False, links=PAGES) == []
        assert page.locator(".warn").first.is_visible() or kind == "hostile"


def test_the_form_that_is_not_there(browser, tmp_path):
    write_site(site_pages(moments()), tmp_path / "pages")
    with open_page(browser, tmp_path / "pages", "ask.html", width=360) as (page, told):
        assert page_problems(page, told, width=360, dark=False, links=PAGES) == []
        assert page.locator("form, input, button").count() == 0


BROKEN = {
    "pale text": ("<style>.small { color: #bbb !important }</style>", "has a contrast of only"),
    "pale mixed colours": (
        "<style>.card { background: color-mix(in srgb, #1d2226 70%, #fff) !important }</style>",
        "has a contrast",
    ),
    "too wide": ('<div style="width: 1500px">wide</div>', "overflow at 1200 pixels"),
    "link away": ('<a href="https://example.org/">more</a>', "leads nowhere or away"),
    "another script": ("<script>window.foreign = 1</script>", "console, error"),
    "image from elsewhere": ('<img src="http://example.org/x.png">', "example.org"),
}


@pytest.mark.parametrize(("words", "found"), BROKEN.values(), ids=BROKEN)
def test_the_checker_finds_what_is_broken(browser, sites, tmp_path, words, found):
    text = (sites / "moments" / "index.html").read_text()
    (tmp_path / "index.html").write_text(text.replace("</main>", f"{words}</main>"))
    with open_page(browser, tmp_path, "index.html") as (page, told):
        problems = page_problems(page, told, width=1200, dark=False, links=PAGES)
        assert any(found in problem for problem in problems), problems
        assert page.evaluate("window.foreign") is None


def test_nothing_moves_for_those_who_want_it_still(browser, sites):
    for wanted, moves in (("reduce", False), ("no-preference", True)):
        with open_page(browser, sites / "moments", "index.html", reduced_motion=wanted) as (page, _):
            durations = page.evaluate(
                "['#found-bar', '#now'].map(place => getComputedStyle(document.querySelector(place)).transitionDuration)"
            )
            assert all((float(time.rstrip("s")) > 0) == moves for time in durations), durations


def test_links_lead_from_page_to_page(browser, sites):
    with open_page(browser, sites / "moments", "index.html", service="file://") as (page, told):
        for name in ("ask.html", "model.html", "index.html"):
            page.locator(f"nav.pages a[href='{name}']").click()
            page.wait_for_url(f"**/{name}")
            assert page.locator("nav.pages a[aria-current=page]").get_attribute("href") == name
        assert [words for words in told if "file:" not in words] == []


# ---- formulas

EPSILONS = [0.05 * (16 / 0.05) ** (place / 12) for place in range(13)] + [1.0, 100.0]
DELTAS = [1e-12, 1e-8, 1e-5, 1e-3, 0.1]


@pytest.fixture(scope="session")
def formulas(browser):
    """Evaluates the functions of formulas.js in the browser."""
    page = browser.new_page()
    page.add_script_tag(content=part("formulas.js"))
    yield page.evaluate
    page.close()


def close(found, wanted, relative):
    return found == wanted or abs(found - wanted) <= relative * abs(wanted)


def test_attacker_formulas_agree_with_python(formulas):
    grid = list(product(EPSILONS, DELTAS))
    found = formulas(
        "grid => grid.map(([e, d]) => [bestAdvantage(e, d), rightAtMost(e, d), bestTruePositiveRate(e, d, 0.01),"
        " bestTruePositiveRate(e, d, 0.3)])",
        grid,
    )
    for (epsilon, delta), numbers in zip(grid, found, strict=True):
        budget = Budget(epsilon, delta)
        advantage = best_advantage(budget)
        rates = [best_true_positive_rate(budget, rate) for rate in (0.01, 0.3)]
        for number, wanted in zip(numbers, (advantage, (1 + advantage) / 2, *rates), strict=True):
            assert close(number, wanted, 1e-9), (epsilon, delta)


def test_the_noise_multiplier_agrees_with_python(formulas):
    grid = list(product(EPSILONS, DELTAS))
    found = formulas("grid => grid.map(([e, d]) => gaussianMultiplier(e, d))", grid)
    for (epsilon, delta), number in zip(grid, found, strict=True):
        assert close(number, gaussian_multiplier(epsilon, delta), 1e-6), (epsilon, delta)


SHAPES = [
    {"num_features": 1, "num_labelled": 10, "edge_influence": 1.0, "ridge": 0.01, "noise_share": 0.9},
    {"num_features": 16, "num_labelled": 60, "edge_influence": 0.4, "ridge": 1.0, "noise_share": 0.9},
    {"num_features": 64, "num_labelled": 2000, "edge_influence": 1.5, "ridge": 0.2, "noise_share": 0.5},
    {"num_features": 2000, "num_labelled": 100_000, "edge_influence": 0.1, "ridge": 2.0, "noise_share": 0.99},
]
NAMED = {
    "quantile": "noise_radius_quantile",
    "ridge": "ridge",
    "weightBound": "weight_norm_bound",
    "jacobian": "jacobian_epsilon",
    "extraRidge": "extra_ridge",
    "noiseRate": "noise_rate",
}


@pytest.mark.parametrize("loss", [("soft-margin", 3), ("pseudo-huber:0.2", 7), ("soft-margin", 40)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['num_features']} columns")
def test_theorem_one_agrees_with_python(formulas, shape, loss):
    bounds = loss_by_name(*loss)
    given = {
        "ridge": shape["ridge"],
        "noiseShare": shape["noise_share"],
        "numFeatures": shape["num_features"],
        "numLabelled": shape["num_labelled"],
        "numClasses": loss[1],
        "edgeInfluence": shape["edge_influence"],
        "slopeBound": bounds.slope_bound,
        "curvatureBound": bounds.curvature_bound,
        "curvatureSlopeBound": bounds.curvature_slope_bound,
    }
    grid = list(product(EPSILONS, DELTAS))
    found = formulas("([grid, shape]) => grid.map(([e, d]) => theoremOne(e, d, shape))", [grid, given])
    for (epsilon, delta), values in zip(grid, found, strict=True):
        wanted = make_plan(Budget(epsilon, delta), loss=bounds, **shape).theorem
        for name, field in NAMED.items():
            assert close(values[name], getattr(wanted, field), 1e-6), (epsilon, delta, name)


# ---- the dial


def shown(page, *names):
    return [page.locator(f"#{name}").inner_text() for name in names]


def percent(share):
    return f"{100 * share:.1f} %"


def check_dial(page, model):
    """Every number on the page is Python's for the epsilon in the box; gives that epsilon."""
    epsilon = float(page.locator("#epsilon").input_value())
    budget = Budget(epsilon, dial_of(model).budget.delta)
    advantage = best_advantage(budget)
    right, found = (1 + advantage) / 2, best_true_positive_rate(budget, 0.01)
    assert shown(page, "right", "found", "advantage") == [percent(right), percent(found), f"{advantage:.4f}"]
    wrong = 100 - math.ceil(100 * right - 1e-9)
    assert page.locator("#dots .wrong").count() == wrong
    assert page.locator("#dots .learnt").count() == 50 - wrong
    assert shown(page, "learnt", "wrong") == [str(50 - wrong), str(wrong)]
    if model.method == "moments":
        assert close(float(shown(page, "multiplier")[0]), gaussian_multiplier(epsilon, budget.delta), 1e-3)
    else:
        plan = make_plan(
            budget,
            loss=loss_by_name("soft-margin", len(model.class_names)),
            **{
                name: model.receipt.plan[name]
                for name in ("num_features", "num_labelled", "edge_influence", "ridge", "noise_share")
            },
        ).theorem
        for name, wanted in (
            ("ridge", plan.ridge),
            ("extraRidge", plan.extra_ridge),
            ("noiseRate", plan.noise_rate),
            ("noiseLength", plan.noise_radius_quantile / plan.noise_rate),
        ):
            assert close(float(shown(page, f"theorem-{name}")[0]), wanted, 1e-3), (epsilon, name)
    return epsilon


@pytest.mark.parametrize("kind", ["moments", "paper"])
def test_the_slider_moves_by_keyboard(browser, sites, kind):
    model = MODELS[kind]()
    with open_page(browser, sites / kind, "index.html") as (page, told):
        assert check_dial(page, model) == model.receipt.budget.epsilon
        page.locator("#slider").focus()
        seen = []
        for key in ("Home", "ArrowRight", "PageUp", "PageUp", "PageUp", "ArrowLeft", "End", "PageDown", "ArrowUp"):
            page.keyboard.press(key)
            seen.append(check_dial(page, model))
        assert seen[0] == 0.05
        assert seen[6] == 16
        assert seen[0] < seen[1] < seen[2] < seen[3] < seen[4]
        assert seen[5] < seen[4]
        assert page.locator("#slider").get_attribute("aria-valuetext") == f"epsilon {seen[-1]:g}"
        page.locator("#back").press("Enter")
        assert check_dial(page, model) == model.receipt.budget.epsilon
        assert told == []


@pytest.mark.parametrize("kind", ["moments", "several", "paper"])
def test_several_connections_have_the_numbers_of_python(browser, sites, kind):
    model = MODELS[kind]()
    promised = model.by_edges(range(1, 11))
    with open_page(browser, sites / kind, "index.html") as (page, told):
        start = {"several": 3}.get(kind, 1)
        assert page.locator("#edges").input_value() == str(start)
        seen = [shown(page, "several-edges", "several-epsilon", "several-right")]
        page.locator("#edges").focus()
        for key in ("Home", *["ArrowRight"] * 9):
            page.keyboard.press(key)
            seen.append(shown(page, "several-edges", "several-epsilon", "several-right"))
        assert told == []
    for (edges, epsilon, right), wanted in zip(seen, [start, *range(1, 11)], strict=True):
        budget = promised[wanted]
        assert edges == str(wanted)
        if budget is None:
            assert (epsilon, right) == ("no promise", "100.0 %")
        else:
            assert float(epsilon) == budget.epsilon
            assert right == percent((1 + best_advantage(budget)) / 2)


@pytest.mark.parametrize("kind", ["moments", "paper", "seeded", "without noise"])
def test_numbers_can_be_typed(browser, sites, kind):
    model = MODELS[kind]()
    with open_page(browser, sites / kind, "index.html") as (page, _):
        for typed in ("0.05", "0.123", "0.7", "1", "4", "9.99", "16"):
            page.locator("#epsilon").fill(typed)
            assert check_dial(page, model) == float(typed)
        for wrong in ("", "0", "-1", "17", "1e9"):
            page.locator("#epsilon").fill(wrong)
            assert shown(page, "epsilon-problem") == ["Type a number from 0.05 to 16."]
            assert page.locator("#epsilon").get_attribute("aria-invalid") == "true"
            assert shown(page, "right") == [percent((1 + best_advantage(Budget(16, dial_of(model).budget.delta))) / 2)]
        page.locator("#epsilon").fill("2")
        assert shown(page, "epsilon-problem") == [""]
        expect(page.locator("#said")).to_contain_text("Epsilon 2:")


@pytest.mark.parametrize("kind", ["moments", "paper"])
def test_the_accuracy_beside_it_is_what_was_measured(browser, sites, kind):
    method = MODELS[kind]().method
    words = {"above": "it beats", "below": "it is worse than", "no different": "it does not beat"}
    with open_page(browser, sites / kind, "index.html") as (page, _):
        for graph, access in product(("cora-ml", "actor", "circles-20-0.1-strong"), measured.ACCESSES):
            page.locator("#graph").select_option(graph)
            page.locator(f"input[name=access][value={access}]").check()
            private, controls = measured.private_scores(method, graph, access), measured.controls(method, graph, access)
            best = max(controls, key=lambda score: score.mean)
            for typed in (0.06, 0.5, 0.7, 1, 4, 5):
                page.locator("#epsilon").fill(str(typed))
                below = [score for score in private if score.epsilon <= typed][-1:]
                above = [score for score in private if score.epsilon > typed][:1]
                told = below if below and below[0].epsilon == typed else below + above
                said = page.locator("#outcome").inner_text()
                for score in told:
                    assert f"at epsilon {score.epsilon:g} {words[measured.compared(score, best)]}" in said
                assert said.count("at epsilon") == len(told)
                assert said.endswith(f"spends nothing: {measured.NAMES[best.method]}, {number(best)} %.")
                warned = any(measured.compared(score, best) != "above" for score in told)
                assert ("warn" in (page.locator("#outcome").get_attribute("class") or "")) == warned
                assert row(page, "below")[1] == (f"{number(below[0])} %" if below else "not measured")
                assert row(page, "above")[1] == (f"{number(above[0])} %" if above else "not measured")
                assert page.locator("#chart .near").count() == len(told)
            for score in controls:
                assert row(page, score.method)[1:] == [f"{number(score)} %", "nothing"]
            assert page.locator("#chart .point").count() == len(private) == 5
            drawn = page.locator("#chart .line").count()
            outside = len(re.findall(r"\d %\)", shown(page, "off-scale")[0]))
            assert drawn + outside == len(controls) + 1


def number(score):
    return f"{100 * score.mean:.2f} \u00b1 {100 * score.error:.2f}"


def row(page, name):
    return page.locator(f"#costs tr[data-row='{name}'] > *").all_inner_texts()


@pytest.mark.parametrize("width", [*WIDTHS, 560, 800])
@pytest.mark.parametrize("kind", ["moments", "paper"])
def test_turning_the_dial_shifts_nothing(browser, sites, kind, width):
    tops = "[...document.querySelectorAll('section, .card, #chart, #outcome')].map(e => e.getBoundingClientRect().top + scrollY)"
    with open_page(browser, sites / kind, "index.html", width=width) as (page, _):
        places = []
        for typed in ("0.05", "0.5", "0.7", "1", "3.21", "16", "99"):
            page.locator("#epsilon").fill(typed)
            places.append(page.evaluate(tops))
        assert all(place == places[0] for place in places)
