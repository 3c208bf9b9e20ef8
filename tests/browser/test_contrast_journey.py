"""Contrast in a real browser: a pair, a cluster, swap, epsilon, tag, export; it opens again."""

from __future__ import annotations

import json
import re
from pathlib import Path

from driver import Server, choose, settle, visit
from playwright.sync_api import Page, expect


def test_from_a_pair_to_an_export_that_opens_again(
    page: Page, server: Server, tmp_path: Path
) -> None:
    visit(page, server, "contrast")
    first = page.locator(".th-words").first
    expect(first).to_be_visible()
    before = first.inner_text()

    # Swap: the question the other way round has its own answer.
    page.locator(".st-key-contrast_swap button").first.click()
    settle(page)
    expect(first).not_to_have_text(before)
    page.wait_for_url(re.compile("contrast_target="))
    page.locator(".st-key-contrast_swap button").first.click()
    settle(page)
    expect(first).to_have_text(before)

    # Open a cluster: pictures from the app's own route, each with its caption.
    page.locator('[class*="st-key-contrast_open_"] button').nth(1).click()
    settle(page)
    tiles = page.locator('.th-grid[aria-label^="Samples of the set"] figure.th-cell').filter(
        visible=True
    )
    assert tiles.count() >= 8
    assert all(text.strip() for text in tiles.locator("figcaption").all_inner_texts())
    tiles.first.scroll_into_view_if_needed()
    picture = tiles.first.locator("img")
    assert "/thumb/" in str(picture.get_attribute("src"))
    page.wait_for_function(
        "img => img.complete && img.naturalWidth > 0", arg=picture.element_handle()
    )
    title = page.locator(".ct-card h3").nth(1).inner_text()
    expect(page.get_by_role("heading", name=title, exact=True).last).to_be_visible()

    # Tag, keep, note: they come back with the page.
    page.get_by_role("radio", name="Keep").or_(
        page.get_by_role("button", name="Keep")
    ).first.click()
    settle(page)
    for name, words in (("Tag", "journey"), ("Note", "seen by a browser")):
        field = page.get_by_label(name, exact=True).first
        field.fill(words)
        field.press("Enter")
        settle(page)

    # The export holds them, and opens again as the same clusters.
    with page.expect_download() as caught:
        page.get_by_role("button", name="Clusters as JSON").click()
    file = tmp_path / "clusters.json"
    caught.value.save_as(file)
    exported = json.loads(file.read_text("utf-8"))
    noted = [d for d in exported["directions"] if d["yours"].get("tag") == "journey"]
    assert len(noted) == 1
    assert noted[0]["yours"]["verdict"] == "keep"
    with page.expect_download() as caught:
        page.get_by_role("button", name="Gallery as HTML").click()
    gallery = tmp_path / "gallery.html"
    caught.value.save_as(gallery)
    text = gallery.read_text("utf-8")
    assert text.count("data:image/webp;base64,") > 50
    assert "seen by a browser" in text

    page.get_by_role("radio", name="Open an export").or_(
        page.get_by_role("button", name="Open an export")
    ).first.click()
    settle(page)
    page.locator('.st-key-contrast_reopen input[type="file"]').set_input_files(file)
    count = sum(d["title"] is not None for d in exported["directions"])
    expect(page.get_by_text(f"{count} clusters of")).to_be_visible()
    again = page.locator('.th-grid[aria-label^="Samples of the exported"] figure.th-cell')
    expect(again.first).to_be_visible()
    choose(page, "contrast_reopened", title)
    expect(page.get_by_text("Noted: keep · journey")).to_be_visible()
    members = [m for m in noted[0]["members"] if m["pole"] == 1]
    expect(again).to_have_count(len(members))

    # Another epsilon is another answer: not stored, so the page offers to compute it.
    page.get_by_role("radio", name="This pair").or_(
        page.get_by_role("button", name="This pair")
    ).first.click()
    settle(page)
    page.get_by_text("Settings", exact=True).first.click()
    choose(page, "contrast_epsilon", "1.2")
    page.wait_for_url(re.compile("contrast_epsilon=1.2"))
    expect(page.get_by_text("Not computed yet")).to_be_visible()
    expect(page.get_by_role("button", name="Find the groups")).to_be_visible()
