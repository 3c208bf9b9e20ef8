"""The few rules of style that Streamlit's own theme does not reach.

Every colour is derived from the text colour or from a fixed role, so the same rules serve
the light and the dark page.
"""

from __future__ import annotations

import streamlit as st

_CSS = """
:root { --th-line: color-mix(in srgb, currentColor 16%, transparent);
        --th-soft: color-mix(in srgb, currentColor 5%, transparent);
        --th-dim: color-mix(in srgb, currentColor 68%, transparent);
        --th-accent: #0072B2; }
[data-testid="stMainBlockContainer"] { max-width: 1280px; padding-top: 4rem;
        padding-bottom: 3rem; }
[data-testid="stMainBlockContainer"] h1 { font-size: 2rem; line-height: 1.2; padding: 0;
        letter-spacing: -0.01em; }
[data-testid="stMainBlockContainer"] h2 { font-size: 1.3rem; padding: 1.1rem 0 .2rem; }
[data-testid="stMainBlockContainer"] h3 { font-size: 1.1rem; padding: .8rem 0 .1rem; }
.th-brand { font-size: 1.05rem; font-weight: 650; letter-spacing: .01em; }
.th-dim { color: color-mix(in srgb, currentColor 68%, transparent); font-size: .9rem;
        margin: 0; overflow-wrap: anywhere; }
.th-figtitle { font-weight: 600; font-size: 1rem; line-height: 1.3; margin: .2rem 0 0; }
[data-testid="stMainBlockContainer"] p.th-dim { margin: 0; }
.th-verdict { border-left: 4px solid #0072B2; padding: .15rem 0 .15rem 1rem; }
.th-words { font-size: 1.3rem; line-height: 1.4; margin: 0; max-width: 62rem; font-weight: 500; }
.th-kind { font-size: .82rem; margin: 0;
        color: color-mix(in srgb, currentColor 68%, transparent); }
.th-question { font-size: 1.15rem; font-weight: 650; line-height: 1.3; margin: 0 0 .3rem; }
.th-finding { font-size: 1.05rem; line-height: 1.4; margin: 0; }
.th-tiles { display: flex; flex-wrap: wrap; gap: .4rem 2.2rem; margin: .75rem 0 0; padding: 0; }
.th-tile { min-width: 7rem; }
.th-tile > span { font-size: .82rem; display: block;
        color: color-mix(in srgb, currentColor 68%, transparent); }
.th-tile > strong { display: block; font-size: 1.15rem; font-weight: 600;
        font-variant-numeric: tabular-nums; }
.th-tile small { display: block; font-size: .82rem; font-weight: 400;
        color: color-mix(in srgb, currentColor 68%, transparent); }
.th-tile[data-tone="good"] > strong::before { content: "\\2713\\00a0"; color: #009E73; }
.th-tile[data-tone="bad"] > strong::before { content: "\\2212\\00a0"; color: #D55E00; }
.th-tile[data-tone="unknown"] > strong::before { content: "?\\00a0"; opacity: .6; }
.th-grid { display: grid; gap: .8rem .6rem; margin: .3rem 0; padding: 0; list-style: none;
        grid-template-columns: repeat(auto-fill, minmax(var(--th-cell, 104px), 1fr)); }
.th-strip { grid-auto-rows: 0; grid-template-rows: auto; overflow: hidden; row-gap: 0; }
.th-cell { position: relative; margin: 0; border-radius: 6px; outline-offset: 2px; }
.th-cell:focus-visible { outline: 3px solid #0072B2; }
.th-cell img { width: 100%; aspect-ratio: 1; object-fit: contain; display: block;
        background: #fff; border: 1px solid color-mix(in srgb, currentColor 16%, transparent);
        border-radius: 6px; padding: 6px; box-sizing: border-box; }
.th-cell figcaption { font-size: .8rem; line-height: 1.25; margin-top: .25rem; text-align: left;
        overflow: hidden; display: -webkit-box; -webkit-line-clamp: 2;
        -webkit-box-orient: vertical; overflow-wrap: anywhere; }
.th-cell:hover figcaption, .th-cell:focus figcaption { -webkit-line-clamp: unset; }
.th-badge { position: absolute; top: 5px; right: 5px; font-size: .72rem; line-height: 1;
        padding: .2rem .32rem; border-radius: 4px; background: rgba(24,28,34,.82); color: #fff;
        font-variant-numeric: tabular-nums; }
.th-mark img { outline: 3px solid #E69F00; outline-offset: -3px; }
.th-text { border: 1px solid color-mix(in srgb, currentColor 16%, transparent);
        border-radius: 6px; padding: .5rem .6rem; min-height: 3rem; box-sizing: border-box;
        font-size: .92rem; line-height: 1.3; overflow-wrap: anywhere; }
.th-text small { display: block; margin-top: .2rem;
        color: color-mix(in srgb, currentColor 68%, transparent); }
.th-text .th-badge { position: static; float: right; margin: 0 0 .2rem .4rem; }
.th-scroll { overflow-x: auto; }
.th-mosaic { border-collapse: collapse; width: 100%; font-size: .85rem; }
.th-mosaic th { text-align: left; font-weight: 600; padding: .35rem .5rem; vertical-align: top; }
.th-mosaic td { padding: .35rem .5rem; vertical-align: top; min-width: 118px;
        border-top: 1px solid color-mix(in srgb, currentColor 12%, transparent); }
.th-mosaic tbody th { border-top: 1px solid color-mix(in srgb, currentColor 12%, transparent); }
.th-mosaic td > div { display: flex; flex-wrap: wrap; gap: 3px; }
.th-mosaic img { width: 28px; height: 28px; object-fit: contain; background: #fff;
        border-radius: 4px; border: 1px solid color-mix(in srgb, currentColor 14%, transparent); }
.th-mosaic small { color: color-mix(in srgb, currentColor 68%, transparent); }
.th-state { border: 1px dashed color-mix(in srgb, currentColor 30%, transparent);
        border-radius: 8px; padding: 1.1rem 1.2rem; }
.th-state h2 { font-size: 1.1rem; margin: 0 0 .3rem; padding: 0; }
.th-state p { margin: .2rem 0 0; max-width: 46rem; }
.th-chip { display: inline-block; border-radius: 999px; padding: .1rem .6rem; font-size: .82rem;
        border: 1px solid color-mix(in srgb, currentColor 28%, transparent);
        margin: 0 .3rem .3rem 0; }
.th-keys { display: flex; flex-wrap: wrap; gap: .15rem .9rem; font-size: .82rem; }
.th-key { display: inline-flex; align-items: center; gap: .35rem; overflow-wrap: anywhere; }
.th-key i { width: .7rem; height: .7rem; border-radius: 50%; flex: none; }
.th-key .th-ramp { width: 9rem; border-radius: 3px; }
.th-foot { font-size: .84rem; color: color-mix(in srgb, currentColor 68%, transparent);
        border-top: 1px solid color-mix(in srgb, currentColor 16%, transparent);
        margin-top: 1rem; padding-top: .6rem; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"] { padding-left: 1rem; padding-right: 1rem; }
  [data-testid="stMainBlockContainer"] h1 { font-size: 1.6rem; }
  .th-words { font-size: 1.1rem; }
  .th-tiles { gap: .5rem 1.4rem; }
  .th-grid { --th-cell: 84px; }
}
@media print {
  [data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stToolbar"] { display: none; }
  .th-cell, .th-tile { break-inside: avoid; }
}
"""


def apply() -> None:
    """Put the style sheet on the page; once in the shell."""
    st.html(f"<style>{_CSS}</style>")
