"""The pages as `gcon serve` serves them: an owner asks in a real browser, and is told what the service answers."""

import json

import pytest
from tests.serve.conftest import running, world  # noqa: F401  # a fixture
from tests_browser.checker import opened, page_problems

from gcon.pages.frame import PAGES
from gcon.serve.client import Client


@pytest.fixture(scope="module")
def service(world, tmp_path_factory):  # noqa: F811
    with running(world, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.mark.parametrize("name", ["", "index.html", "ask.html", "model.html"])
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_every_page_is_whole(browser, service, name, width, dark):
    options = {"width": width, "dark": dark}
    with opened(browser, f"{service.address}/{name}", service=service.address, **options) as (page, told):
        assert page_problems(page, told, links=PAGES, **options) == []


def test_an_owner_asks(browser, service, world):  # noqa: F811
    with opened(browser, f"{service.address}/ask.html", service=service.address) as (page, _):
        page.locator("#token").fill(world.tokens["n3"])
        page.locator("#node").fill("n3")
        page.get_by_role("button", name="Ask with my token").click()
        page.locator("#me-answer .card").wait_for()
        told = page.locator("#me-answer").inner_text()
        with Client(service.address, token=world.tokens["n3"]) as client:
            answer = client.me("n3")
        assert answer.label in told
        assert answer.used in told
        assert answer.promise in told
        assert f"{100 * max(answer.probabilities.values()):.1f} %" in told
        page.locator("#node").fill("n4")
        page.get_by_role("button", name="Ask with my token").click()
        page.get_by_text("The service refused").first.wait_for()
    assert [json.loads(line)["node"] for line in service.access_log.read_text().splitlines()] == ["n3", "n3"]
