"""Transfer in a real browser: verdict, another layer, the triangle, its pictures, the study."""

from __future__ import annotations

import re

from driver import Server, settle, visit
from playwright.sync_api import Page, expect


def test_from_the_verdict_to_a_layer_a_pair_and_the_study(page: Page, server: Server) -> None:
    visit(page, server, "transfer")
    words = page.locator(".th-words").first
    expect(words).to_be_visible()
    answer = words.inner_text()

    # Another layer: the plane and the triangle follow, and the address names it.
    chosen = page.locator(".st-key-transfer_layer").get_by_role("combobox")
    chosen.scroll_into_view_if_needed()
    before = chosen.input_value()
    chosen.click()
    options = page.locator('[role="option"]')
    options.first.wait_for()
    next(o for o in options.all() if o.inner_text().strip() != before).click()
    settle(page)
    page.wait_for_url(re.compile("transfer_layer="))

    # The triangle of a pair and its three pictures, from the app's own route.
    triangle = page.locator(".st-key-transfer_triangle .js-plotly-plot").first
    triangle.scroll_into_view_if_needed()
    expect(triangle.locator(".main-svg").first).to_be_visible()
    pictures = page.locator("figure.th-cell img").filter(visible=True)
    expect(pictures).to_have_count(3)
    pictures.first.scroll_into_view_if_needed()
    page.wait_for_function(
        "img => img.complete && img.naturalWidth > 0", arg=pictures.first.element_handle()
    )

    # The study: a different verdict on the same page, reachable by address.
    page.get_by_role("radio", name="Does it hold? The study").or_(
        page.get_by_role("button", name="Does it hold? The study")
    ).first.click()
    settle(page)
    page.wait_for_url(re.compile("transfer_view="))
    expect(page.get_by_text(answer, exact=True)).to_have_count(0)
    study = page.locator(".st-key-transfer_study_ranking .js-plotly-plot")
    study.first.scroll_into_view_if_needed()
    expect(study.first).to_be_visible()
