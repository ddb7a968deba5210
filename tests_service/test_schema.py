"""Requests made up from the schema of the service, valid and broken: no server error, and only answers that it describes."""

import os
import zlib

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from tests_service.conftest import SENT

load_all_checks()
pytestmark = pytest.mark.timeout(1800)  # ten thousand cases
# Of each kind for each operation with a body: ten thousand in all. The others have nothing to vary.
CASES = int(os.environ.get("GCON_SCHEMA_CASES", "2500"))
CHECKED = [
    CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
        "response_headers_conformance",
        "negative_data_rejection",
    )
]
VALID, BROKEN = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
OPERATIONS = [("GET", path, VALID) for path in ("/statement", "/card", "/health", "/metrics")]
OPERATIONS += [("POST", path, mode) for path in ("/predict", "/me") for mode in (VALID, BROKEN)]


@pytest.fixture(scope="module")
def session():
    with requests.Session() as session:
        yield session


def validate(case, response):
    """A body that is too large is refused as that, whatever else is wrong with it: one check does not know this status."""
    case.validate_response(response, checks=CHECKED if response.status_code != 413 else CHECKED[:-1])


def test_the_list_is_the_whole_schema(service_schema):
    known = {(each.ok().method.upper(), each.ok().path) for each in service_schema.get_all_operations()}
    assert known == {(method, path) for method, path, _ in OPERATIONS}


@pytest.mark.parametrize(("method", "path", "mode"), OPERATIONS)
def test_whatever_is_sent(service_schema, session, method, path, mode):
    operation = service_schema[path][method]

    @settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        response = case.call(session=session)
        SENT[f"{method} {path}", response.status_code] += 1
        validate(case, response)

    send()


def fitting(entry):
    """The same question about people who exist: ids of the table, and as many features as the model knows."""
    if isinstance(entry, list):
        return [fitting(each) for each in entry]
    if not isinstance(entry, dict):
        return entry
    found = {key: fitting(value) for key, value in entry.items()}
    for name in {"id", "node"} & set(found):
        found[name] = f"n{zlib.crc32(str(found[name]).encode()) % 80}"
    if "features" in found:
        found["features"] = (found["features"] + [0.5] * 32)[:32]
    return found


def test_questions_about_people_who_exist(service_schema, session, world):
    operation = service_schema["/predict"]["POST"]

    @settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=VALID))
    def send(case):
        case.body = fitting(case.body)
        response = case.call(session=session)
        SENT["POST /predict", response.status_code] += 1
        validate(case, response)

    send()
    assert SENT["POST /predict", 200] > CASES // 10
