"""One Chromium for all tests: the system's own, nothing is downloaded. A missing one is an error, never a skip."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

NEEDED = "These tests need Chromium on the PATH. On Debian: apt-get install chromium"


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail(NEEDED)
    with sync_playwright() as playwright:
        # No name is looked up, so that a page which asks for something gets nothing, whatever the network is like. This
        # machine's own address is left for services that tests start themselves.
        rules = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
        running = playwright.chromium.launch(executable_path=path, args=[rules])
        yield running
        running.close()
