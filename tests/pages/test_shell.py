"""The helpers: numbers in words, the page's parts, jobs, errors and the server's routes."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from page_kit import ROOT
from starlette.applications import Starlette
from starlette.testclient import TestClient

from core.results import Result
from pages._shell import words
from pages._shell.layout import command_line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (24, "24"),
        (1234567, "1,234,567"),
        (0.00004567, "4.57e-05"),
        (-0.04567, "-0.0457"),
        (99.96, "100.0"),
        (math.nan, "n/a"),
        (math.inf, "n/a"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert words.number(value) == text


def test_plus_minus_share_their_decimals() -> None:
    assert words.plus_minus(0.1634, 0.02) == "0.163 ± 0.020"
    assert words.plus_minus(math.nan, 0.02) == "n/a"
    assert words.plus_minus(0.5, None, as_percent=True) == "50.0 %"


def test_listed_says_how_many_more() -> None:
    assert words.listed(list("abcdefgh"), most=3) == "a, b, c and 5 more"


def test_every_design_term_has_a_tooltip() -> None:
    for term in ("features", "encoder", "layer", "domain", "blend", "epsilon", "gap", "WIP"):
        assert words.tip(term)
        assert len(str(words.tip(term))) <= 100


def test_command_line_names_only_what_differs() -> None:
    result = Result("stitching", {"dataset": "emoji", "seed": 0, "models": ["a", "b"]}, {})
    line = command_line(result, {"seed": 0, "dataset": ""})
    assert line == """theodolite stitch --set dataset=emoji --set 'models=["a", "b"]'"""


def test_the_command_line_parses_back() -> None:
    import shlex

    from core.cli.analyses import parse_settings

    params = {"dataset": "emoji", "target": "fluent flat", "k": 5, "models": ["a b", "c"]}
    parts = shlex.split(command_line(Result("transfer", params, {})))
    settings = [parts[i + 1] for i, part in enumerate(parts) if part == "--set"]
    assert parse_settings(settings) == params


@pytest.fixture
def client(small_home: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    from pages._shell.server import ROUTES

    monkeypatch.setenv("THEODOLITE_HOME", str(small_home))
    return TestClient(Starlette(routes=ROUTES))


def test_thumbnails_are_small_webp_and_immutable(client: TestClient, small_home: Path) -> None:
    from core.workspace import open_workspace

    sha = open_workspace(small_home).dataset("emoji").items["sha256"].iloc[0]
    answer = client.get(f"/thumb/{sha}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/webp"
    assert "immutable" in answer.headers["cache-control"]
    assert len(answer.content) < 20_000


@pytest.mark.parametrize(
    "name", ["0" * 64, "x" * 64, "A" * 64, "abc", "%2e%2e%2fcatalogue.sqlite", "0" * 63 + "%0a"]
)
def test_other_names_are_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"/thumb/{name}").status_code == 404


def test_ready_opens_the_catalogue(client: TestClient) -> None:
    assert client.get("/ready").json()["ready"] is True


def test_ready_says_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pages._shell.server import ROUTES

    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("THEODOLITE_HOME", str(tmp_path / "file"))
    answer = TestClient(Starlette(routes=ROUTES)).get("/ready")
    assert answer.status_code == 503
    assert answer.json()["reason"]


def test_the_launcher_is_small_and_points_at_the_shell() -> None:
    text = (ROOT / "app.py").read_text()
    assert len(text.splitlines()) < 50
    assert '"pages" / "_shell" / "main.py"' in text


def test_colours_are_fixed_by_name_not_by_order() -> None:
    from core.figures.style import domain_colour

    names = ["twemoji", "noto", "openmoji"]
    assert domain_colour("noto", names) == domain_colour("noto", names[::-1])
    assert len({domain_colour(n, names) for n in names}) == 3


def test_a_map_keeps_captions_from_being_markup() -> None:
    from core.figures.explore import map_figure

    items = pd.DataFrame({"id": [1, 2], "label": ["a", "b"], "caption": ["<b>x</b>", "y & z"]})
    table = pd.DataFrame({"id": [1, 2], "x": [0.0, 1.0], "y": [0.0, 1.0]})
    result = Result("explore", {"method": "pca"}, {"explained": [0.5, 0.2]}, {"map": table})
    texts = [text for trace in map_figure(result, items).data for text in trace.text]
    assert texts == ["&lt;b>x&lt;/b>", "y &amp; z"]
