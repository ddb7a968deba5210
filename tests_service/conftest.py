"""The running service of tests/serve."""

import collections

import pytest
import schemathesis
from tests.serve.conftest import running, world  # noqa: F401  # a fixture

SENT = collections.Counter()


@pytest.fixture(scope="session")
def service(world, tmp_path_factory):  # noqa: F811
    with running(world, tmp_path_factory.mktemp("schema"), "--no-log-requests") as found:
        yield found


@pytest.fixture(scope="session")
def service_schema(service):
    return schemathesis.openapi.from_url(f"{service.address}/openapi.json")


def pytest_terminal_summary(terminalreporter):
    for (operation, status), count in sorted(SENT.items()):
        terminalreporter.write_line(f"{operation:16} {status} {count:7,}")
    terminalreporter.write_line(f"{'requests':20} {sum(SENT.values()):7,}")
