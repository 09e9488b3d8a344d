"""The description of the interface is true: whatever is sent, the answer is one that it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis import GenerationMode

import hamflow
from _paths import ROOT
from _viewer import Browser, Page, moving, run, served
from hamflow.viewer.api import create_api
from hamflow.viewer.limits import Limits
from hamflow.viewer.registry import Registry

FEW = hypothesis.settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("given")
    for k, frame in enumerate(moving(2)):
        hamflow.write_image(folder / f"{k}.png", frame)
    with served([folder], limits=Limits(queue=2, sources=5)) as page:
        yield page


@pytest.fixture(scope="module")
def browser(page: Page) -> Browser:
    return page.browser()


@pytest.fixture(scope="module")
def names(browser: Browser) -> dict[str, str]:
    """Ids that exist."""
    source = browser.get("/api/sources").json()[0]["id"]
    job = run(browser, source)
    return {"source": source, "job": job["id"], "result": job["results"]["0"]}


# What fits the description may still not fit the image, such as a pixel outside of it.
EXCLUDED = [schemathesis.checks.positive_data_acceptance]
# The description needs nothing of what is served.
SCHEMA = schemathesis.openapi.from_dict(create_api(cast("Registry", None)).openapi())
OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations()}


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("label", OPERATIONS)
def test_anything(page: Page, label: str, mode: GenerationMode) -> None:
    @FEW
    @hypothesis.given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        case.call_and_validate(base_url=page.address, excluded_checks=EXCLUDED)

    try:
        check()
    except hypothesis.errors.Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing can be wrong without parameters


@pytest.mark.parametrize("label", [label for label in OPERATIONS if label.startswith("GET")])
def test_what_exists(page: Page, browser: Browser, names: dict[str, str], label: str) -> None:
    """With the ids of what is there, so that more than their absence is tested."""

    @FEW
    @hypothesis.given(case=OPERATIONS[label].as_strategy())
    def check(case: Any) -> None:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = names.get(name, case.path_parameters[name])
        case.call_and_validate(
            base_url=page.address, cookies=dict(browser.cookies), excluded_checks=EXCLUDED
        )

    check()


def test_every_answer_is_described(page: Page, browser: Browser) -> None:
    description = browser.get("/openapi.json").json()
    assert description["info"]["version"] == hamflow.__version__
    for path, operations in description["paths"].items():
        assert path.startswith("/api/")
        for operation in operations.values():
            assert operation["description"]
            for status, answer in operation["responses"].items():
                content = answer.get("content", {})
                if status.startswith("4"):
                    kind = content["application/json"]["schema"]["$ref"]
                    assert kind == "#/components/schemas/Message"
                else:
                    assert content or status == "204"


def test_the_table_in_the_documentation(browser: Browser) -> None:
    text = (ROOT / "docs" / "viewer.md").read_text(encoding="utf-8")
    for path, operations in browser.get("/openapi.json").json()["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in text
