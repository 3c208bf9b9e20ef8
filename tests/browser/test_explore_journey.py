"""Explore in a real browser: search by item and by one's own picture; similarity of layers."""

from __future__ import annotations

import io
import re

import pytest
from driver import Server, settle
from PIL import Image
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def visit(page: Page, server: Server, path: str) -> None:
    page.goto(f"{server.url}/{path}")
    settle(page)


def wait_pictures(page: Page, label: str, least: int) -> None:
    page.wait_for_function(
        """([label, least]) => [...document.querySelectorAll('.th-grid')]
          .filter((grid) => grid.getAttribute('aria-label').startsWith(label))
          .some((grid) => [...grid.querySelectorAll('img')]
            .filter((img) => img.complete && img.naturalWidth > 0).length >= least)""",
        arg=[label, least],
    )


def test_search_by_item_then_by_a_picture_of_ones_own(page: Page, server: Server) -> None:
    visit(page, server, "explore")
    page.get_by_role("radio", name="Search").or_(
        page.get_by_role("button", name="Search", exact=True)
    ).first.click()
    expect(page.locator("h1")).to_have_text("What is like this?")
    page.get_by_label("Find an item").fill("red apple")
    page.get_by_label("Find an item").press("Enter")
    expect(page.get_by_text(re.compile(r"1,920 items searched, by cosine · exact"))).to_be_visible()
    wait_pictures(page, "Nearest under A", 8)
    page.wait_for_url(re.compile("(?=.*explore_view=Search)(?=.*explore_find=red)"))
    # The packaged SqueezeNet runs here: a picture that nobody has seen before is asked about.
    visit(
        page, server,
        "explore?explore_view=Search&explore_ask=A+picture&explore_model=SqueezeNet+1.1",
    )  # fmt: skip
    out = io.BytesIO()
    Image.new("RGB", (80, 80), (220, 30, 30)).save(out, "PNG")
    page.locator('input[type="file"]').set_input_files(
        {"name": "red.png", "mimeType": "image/png", "buffer": out.getvalue()}
    )
    wait_pictures(page, "Nearest under A: SqueezeNet 1.1", 8)


def test_similarity_of_encoders_and_of_layers(page: Page, server: Server) -> None:
    visit(page, server, "explore?explore_view=Similarity")
    expect(page.locator("h1")).to_have_text("How alike are the representations?")
    expect(page.get_by_text(re.compile("Most alike by linear CKA, debiased"))).to_be_visible()
    page.wait_for_selector(".st-key-explore_matrix .js-plotly-plot .main-svg")
    page.get_by_role("radio", name="Layers").or_(
        page.get_by_role("button", name="Layers", exact=True)
    ).first.click()
    expect(page.get_by_text(re.compile("block03 and block04"))).to_be_visible()
    page.wait_for_function(
        "() => { const gd = document.querySelector('.st-key-explore_matrix .js-plotly-plot');"
        " return gd && gd._fullData && gd._fullData[0].z.length === 13; }"
    )
    page.wait_for_url(re.compile("explore_between=Layers"))
