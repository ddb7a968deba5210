"""The form of the site in a real browser, against a stub: silent until asked, honest about errors, forgetful."""

import json

import pytest
from playwright.sync_api import expect
from tests.pages.site.models import HOSTILE, moments, nodes
from tests.pages.site.stub import ANSWER, running
from tests_browser.checker import opened, page_problems

from gcon.pages.build import site_pages
from gcon.pages.frame import PAGES
from gcon.pages.write import write_site

TOKEN = "gcon_" + "aB3-_" * 8 + "xyz"


@pytest.fixture
def stub():
    with running() as service:
        service.pages = site_pages(moments(), nodes=nodes(), service="", me=True, node_table=True)
        yield service


def fill_me(page, token=TOKEN, node="anna"):
    page.locator("#token").fill(token)
    page.locator("#node").fill(node)
    page.get_by_role("button", name="Ask with my token").click()


def ask_page(browser, stub, **options):
    return opened(browser, f"{stub.origin}/ask.html", service=stub.origin, **options)


def test_an_owner_is_answered(browser, stub):
    with ask_page(browser, stub) as (page, told):
        page.locator("#token").fill(TOKEN)
        page.locator("#node").fill("anna")
        assert f"curl {stub.origin}/predict" in page.locator("#programs").inner_text()
        page.wait_for_load_state("networkidle")
        assert [entry[:2] for entry in stub.asked] == [("GET", "/ask.html")]
        page.locator("#node").press("Enter")
        answer = page.locator("#me-answer .card")
        answer.wait_for()
        (_, path, headers, body), *more = stub.questions
        assert more == []
        assert (path, json.loads(body)) == ("/me", {"node": "anna"})
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert not {"Cookie", "Referer"} & set(headers)
        text = answer.inner_text()
        for words in ("cats", "70.0 %", ANSWER["used"], ANSWER["promise"], ANSWER["audience"], ANSWER["release"]):
            assert words in text
        assert page.locator("#me-answer dt").all_inner_texts() == ["cats", "dogs & owls", "the 'others'"]
        widths = page.locator("#me-answer .bar span").evaluate_all(
            "bars => bars.map(bar => bar.getBoundingClientRect().width)"
        )
        assert widths == sorted(widths, reverse=True)
        assert TOKEN not in page.url
        kept = page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
        assert kept == [0, 0, ""]
        for dark in (False, True):
            page.emulate_media(color_scheme="dark" if dark else "light")
            assert page_problems(page, told, width=1200, dark=dark, links=PAGES) == []


def test_a_token_is_hidden_until_it_is_to_be_seen_and_forgotten_after(browser, stub):
    with ask_page(browser, stub) as (page, _):
        token, button = page.locator("#token"), page.locator("#show-token")
        token.fill(TOKEN)
        assert (token.get_attribute("type"), button.inner_text()) == ("password", "Show")
        button.press("Space")
        assert (token.get_attribute("type"), button.inner_text()) == ("text", "Hide")
        assert button.get_attribute("aria-pressed") == "true"
        button.press("Space")
        assert token.get_attribute("type") == "password"
        page.locator("nav.pages a[href='model.html']").click()
        page.wait_for_url("**/model.html")
        page.go_back()
        page.wait_for_url("**/ask.html")
        assert page.locator("#token").input_value() == ""
        assert stub.questions == []


def test_what_somebody_knows_is_asked(browser, stub):
    with ask_page(browser, stub, width=390) as (page, told):
        page.locator("#person").fill("anna\n")
        page.locator("#neighbours").fill("bert\n\n  carl  \n")
        page.get_by_role("button", name="Ask with what I wrote").click()
        page.locator("#predict-answer .card").wait_for()
        page.locator("input[name=kind][value=features]").check()
        page.locator("#person").fill("1, 2.5, -3e-1 0")
        page.locator("input[name=access][value=none]").check()
        assert page.locator("#neighbours").is_disabled()
        page.get_by_role("button", name="Ask with what I wrote").click()
        expect(page.locator("#predict-form button")).to_have_attribute("aria-disabled", "false")
        page.wait_for_load_state("networkidle")
        assert [(path, json.loads(body)) for _, path, _, body in stub.questions] == [
            ("/predict", {"access": "own-edges", "me": {"id": "anna"}, "neighbours": [{"id": "bert"}, {"id": "carl"}]}),
            ("/predict", {"access": "none", "me": {"features": [1, 2.5, -0.3, 0]}, "neighbours": []}),
        ]
        assert all("Authorization" not in headers for _, _, headers, _ in stub.questions)
        assert page_problems(page, told, width=390, dark=False, links=PAGES) == []


def test_the_form_works_by_keyboard_alone(browser, stub):
    with ask_page(browser, stub) as (page, _):
        page.locator("#token").focus()
        visited = []
        for typed in (TOKEN, None, "anna", None):
            if typed:
                page.keyboard.type(typed)
            visited.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"
            page.keyboard.press("Tab" if visited[-1] != "Ask with my token" else "Enter")
        assert visited == ["token", "show-token", "node", "Ask with my token"]
        page.locator("#me-answer .card").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "Ask with my token"


ERRORS = {
    401: ("refused", "The service refused: the token, the node's id or both are wrong"),
    404: ("not found", "The service does not answer this kind of question."),
    413: ("too large", "The question is too large for the service."),
    422: ("bad input", "The service could not use the question."),
    429: ("too many requests", "The service gets too many questions."),
    500: ("withheld", "The service could not answer, and withholds why."),
    503: ("busy", "The service is busy."),
    418: ("other", "The service could not answer (status 418)."),
}


@pytest.mark.parametrize("status", ERRORS)
def test_errors_are_sentences(browser, stub, status):
    kind, words = ERRORS[status]
    more = {"Retry_After": "17"} if status == 429 else {}
    stub.answer({"error": kind, "message": f"<b>{kind}</b> it is."}, status, **more)
    with ask_page(browser, stub) as (page, told):
        fill_me(page)
        problem = page.locator("#me-answer .warn")
        problem.wait_for()
        said = problem.inner_text()
        assert said.startswith(words)
        assert (f"It says: <b>{kind}</b> it is." in said) == (status != 401)
        assert ("Try again in 17 seconds." in said) == (status == 429)
        assert page.locator("#me-answer").get_attribute("aria-live") == "polite"
        assert page.locator("#me-answer b").count() == 0
        assert [line for line in told if not line.startswith("console, error: Failed to load resource")] == []
        stub.answer(ANSWER)
        page.get_by_role("button", name="Ask with my token").click()
        page.locator("#me-answer .card").wait_for()


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"", {}, [], {"label": 3, "probabilities": {}}, {"label": "x", "probabilities": None},
     {"label": "x", "probabilities": {"x": "much"}}],
    ids=repr,
)  # fmt: skip
def test_answers_that_make_no_sense(browser, stub, content):
    stub.answer(content)
    with ask_page(browser, stub) as (page, told):
        fill_me(page)
        page.locator("#me-answer .warn").wait_for()
        assert "does not understand" in page.locator("#me-answer").inner_text()
        assert told == []


def test_hostile_answers_stay_words(browser, stub):
    stub.answer({**ANSWER, "label": HOSTILE[1], "probabilities": {HOSTILE[0]: 7.0, HOSTILE[1]: -1}, "used": HOSTILE[1]})
    with ask_page(browser, stub, width=390) as (page, told):
        fill_me(page)
        page.locator("#me-answer .card").wait_for()
        assert page.locator("#me-answer img, #me-answer script").count() == 0
        assert HOSTILE[1] in page.locator("#me-answer").inner_text()
        assert page_problems(page, told, width=390, dark=False, links=PAGES) == []


FIELDS = {
    "no token": (lambda page: fill_me(page, token="secret"), "token", "This is no token"),
    "no node": (lambda page: fill_me(page, node="  "), "node", "Write your node's id."),
    "nobody": (lambda page: fill_predict(page, "", ""), "person", "Write one line about yourself."),
    "two people": (lambda page: fill_predict(page, "anna\nbert", ""), "person", "Write one line"),
    "few numbers": (
        lambda page: fill_predict(page, "1 2 3", "", "features"),
        "person",
        "Your line must have 4 numbers",
    ),
    "words": (lambda page: fill_predict(page, "1 2 3 x", "", "features"), "person", "Your line must have 4 numbers"),
    "infinite": (lambda page: fill_predict(page, "1 2 3 1e999", "", "features"), "person", "Your line must have 4"),
    "neighbour": (
        lambda page: fill_predict(page, "1 2 3 4", "1 2 3 4\n1", "features"),
        "neighbours",
        "Line 2 must have",
    ),
}


def fill_predict(page, person, neighbours, kind="id"):
    page.locator(f"input[name=kind][value={kind}]").check()
    page.locator("#person").fill(person)
    page.locator("#neighbours").fill(neighbours)
    page.get_by_role("button", name="Ask with what I wrote").click()


@pytest.mark.parametrize(("act", "field", "words"), FIELDS.values(), ids=FIELDS)
def test_wrong_fields_are_told_at_the_field_and_not_sent(browser, stub, act, field, words):
    with ask_page(browser, stub, width=390) as (page, told):
        act(page)
        assert words in page.locator(f"#{field}-problem").inner_text()
        assert page.locator(f"#{field}").get_attribute("aria-invalid") == "true"
        assert page.evaluate("document.activeElement.id") == field
        assert f"{field}-problem" in page.locator(f"#{field}").get_attribute("aria-describedby")
        assert stub.questions == []
        assert page_problems(page, told, width=390, dark=False, links=PAGES) == []


def test_a_service_elsewhere(browser, stub, tmp_path):
    """Another origin is asked if it shares its answers, and the policy lets nobody else be asked."""
    write_site(site_pages(moments(), service=stub.origin, me=True, node_table=True), tmp_path / "pages")
    address = (tmp_path / "pages" / "ask.html").absolute().as_uri()
    with opened(browser, address, service=stub.origin) as (page, _):
        fill_me(page)
        page.locator("#me-answer .warn").wait_for()
        assert "could not be reached" in page.locator("#me-answer").inner_text()
        stub.shared = True
        page.get_by_role("button", name="Ask with my token").click()
        page.locator("#me-answer .card").wait_for()
        with running() as other:
            other.shared = True
            failed = page.evaluate(
                "place => fetch(place + '/predict', {method: 'POST'}).then(() => 'sent', () => 'refused')", other.origin
            )
            assert failed == "refused"
            assert other.asked == []


def test_a_service_that_is_gone(browser, stub):
    with ask_page(browser, stub) as (page, _):
        stub.shutdown()
        stub.server_close()
        fill_me(page)
        page.locator("#me-answer .warn").wait_for()
        assert "could not be reached" in page.locator("#me-answer").inner_text()


def test_without_scripts_nothing_can_be_sent(browser, stub):
    with ask_page(browser, stub, java_script_enabled=False) as (page, _):
        assert page.locator("form :is(input, textarea, button):enabled").count() == 0
        assert page.locator("noscript .warn").is_visible()
