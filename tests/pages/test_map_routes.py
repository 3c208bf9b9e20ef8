"""What a map asks the server for: blocks that stay, items under the pointer, code, and no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from core import analyses
from core.workspace import open_workspace
from pages._shell import gate, map_routes
from pages._shell.blocks import BLOCKS, Blocks, block_url


@pytest.fixture
def client(small_home: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("THEODOLITE_HOME", str(small_home))
    return TestClient(Starlette(routes=map_routes.MAP_ROUTES))


def test_a_block_comes_back_as_it_was_and_is_kept_by_the_browser(client: TestClient) -> None:
    block = np.random.default_rng(0).bytes(5_000)
    answer = client.get(block_url(block))
    assert answer.status_code == 200
    assert answer.content == block
    assert "immutable" in answer.headers["cache-control"]
    assert client.get("/block/" + "0" * 64).status_code == 404


def test_the_store_drops_what_was_used_least_recently() -> None:
    store = Blocks(most=10)
    a, b, c = (store.put(bytes([k]) * 4) for k in range(3))
    assert store.get(a) is None
    assert store.get(b) == b"\1" * 4
    store.put(b"\3" * 4)
    assert store.get(c) is None
    assert store.get(b) is not None
    # One that is larger than the room is kept: somebody is about to ask for it.
    assert store.get(store.put(b"x" * 99)) == b"x" * 99


def test_the_library_is_code_under_its_digest(client: TestClient) -> None:
    answer = client.get(f"/vendor/{map_routes.library_digest()}/regl-scatterplot.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert b"export{" in answer.content
    assert client.get(f"/vendor/{'0' * 64}/regl-scatterplot.js").status_code == 404


def test_an_item_is_found_by_its_id_and_by_its_row(client: TestClient, small_home: Path) -> None:
    workspace = open_workspace(small_home)
    items = workspace.dataset("emoji").items
    result = analyses.run("explore", workspace, dataset="emoji", model="demo/vit-s14")
    expected = items.iloc[7]
    for asked in (f"dataset=emoji&id={expected['id']}", f"map={result.key}&row=7"):
        answer = client.get(f"/map-item?{asked}").json()
        assert answer["id"] == expected["id"]
        assert answer["sha"] == expected["sha256"]
        assert answer["caption"] == expected["caption"]


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "dataset=emoji",
        "dataset=emoji&id=x",
        "dataset=emoji&id=999999",
        "dataset=nobody&id=1",
        "map=../../etc&row=1",
        f"map={'0' * 64}&row=1",
    ],
)
def test_anything_else_is_not_found(client: TestClient, asked: str) -> None:
    assert client.get(f"/map-item?{asked}").status_code == 404


@pytest.mark.parametrize("row", [-1, 72, "x", ""])
def test_a_row_outside_the_map_is_not_found(
    client: TestClient, small_home: Path, row: object
) -> None:
    result = analyses.run(
        "explore", open_workspace(small_home), dataset="emoji", model="demo/vit-s14"
    )
    assert client.get(f"/map-item?map={result.key}&row={row}").status_code == 404


def test_strangers_see_nothing_when_people_sign_in(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = BLOCKS.put(b"secret")
    monkeypatch.setattr(gate, "configured", lambda: True)
    monkeypatch.setattr("pages._shell.rights._signed_in", lambda _request: False)
    assert client.get(f"/block/{name}").status_code == 401
    assert client.get("/map-item?dataset=emoji&id=1").status_code == 401
