"""Below an open cell: whether anchors cover what fails, and what sets the two encoders apart."""

from __future__ import annotations

import streamlit as st

from core.data.dataset import Dataset
from core.jobs.job import Job
from core.results import Result
from core.stitching import failures
from core.stitching.effects import cover_gap
from core.stitching.spaces import split_space
from pages._shell import grid
from pages._shell.jobs import watch
from pages._shell.state import workspace
from pages._shell.stitching_view import short_captions
from pages._shell.words import number, plural

_SHOWN = 3


def covered(dataset: Dataset, result: Result, method: str, i: str, j: str) -> None:
    """Say whether the learned anchors cover the failing items less well than the others."""
    cover = result.tables.get("cover")
    if cover is None or not len(cover):
        return
    ids = failures.failing_ids(result, method, i, j)
    items = dataset.items.set_index("id")
    groups = items["concept"] if "concept" in items.columns else items.index.to_series()
    mine = cover[cover["model"] == j]
    got = cover_gap(mine, ids, groups, seed=result.params["seed"])
    if got["n_failing"] == 0 or got["n_others"] == 0:
        return
    less = got["high"] < 0
    more = got["low"] > 0
    words = "less well" if less else "better" if more else "no less well, as far as can be told,"
    nearest = mine[mine["id"].isin(ids)]["anchor"].value_counts().head(3)
    st.caption(
        f"Anchors cover the failing items {words} than the rest: cosine with the closest learned "
        f"anchor {number(got['failing'])} against {number(got['others'])}, difference "
        f"{got['difference']:+.3f} [{got['low']:+.3f}, {got['high']:+.3f}], concepts resampled, "
        f"n {got['n_failing']:,.0f} and {got['n_others']:,.0f}. Most often closest: "
        + ", ".join(f"anchor {a} ({n})" for a, n in nearest.items())
        + "."
    )


def cover_badges(result: Result, j: str) -> dict[int, float]:
    """Return the cosine of each item with its closest anchor under the features' encoder."""
    cover = result.tables.get("cover")
    if cover is None or not len(cover):
        return {}
    mine = cover[cover["model"] == j]
    return dict(zip(mine["id"].astype(int), mine["cosine"].astype(float), strict=True))


def contrast(dataset: Dataset, result: Result, method: str, i: str, j: str) -> None:
    """Draw KODA between the two encoders on the failing items alone, or the button that runs it."""
    ids = failures.failing_ids(result, method, i, j)
    names = result.summary["titles"]
    if split_space(i)[0] == split_space(j)[0] or len(ids) < failures.LEAST:
        st.caption(
            f"{plural(len(ids), 'failing item')} of this cell: too few, or one encoder twice, to "
            "ask what sets the two encoders apart on them."
        )
        return
    params = failures.params_of(result, method, i, j)
    found = failures.find(workspace(), params)
    if found is not None:
        _groups(dataset, found, names[j], names[i])
        return
    job = _job(params)
    if job is not None and job.active:
        watch(job.id)
        return
    if job is not None and job.state == "failed":
        st.caption(f"{job.error} {job.error_hint}")
    if st.button(
        f"What does {names[j]} see in these that {names[i]} does not?",
        key="stitching_contrast",
        help="KODA on the failing items alone; it runs beside the page, a few seconds.",
    ):
        workspace().jobs.submit("core.stitching.failures:run_contrast", params)
        st.rerun()


def _job(params: dict[str, object]) -> Job | None:
    for job in workspace().jobs.list():
        if job.kind == "core.stitching.failures:run_contrast" and dict(job.params) == params:
            return job
    return None


def _groups(dataset: Dataset, found: Result, own: str, other: str) -> None:
    groups, members = found.tables["groups"], found.tables["members"]
    real = groups[groups["is_group"]] if len(groups) else groups
    if not len(real):
        st.caption(
            f"Among {found.summary['n']} failing items KODA finds no group that {own} holds "
            f"together and {other} scatters: they fail one by one."
        )
        return
    st.caption(
        f"{plural(len(real), 'group')} among {found.summary['n']} failing items that {own} holds "
        f"together and {other} scatters (KODA, these items only)."
    )
    for row in real.head(_SHOWN).itertuples(index=False):
        ids = members.loc[members["direction"] == row.direction, "id"]
        st.markdown(
            f"**Group {row.direction + 1}**: coherence {row.own:.2f} under {own}, {row.other:.2f} "
            f"under {other}; gap {row.relative_gap:.1e}, {row.certificate}"
        )
        grid.items(
            dataset,
            ids,
            key=f"stitching_group_{row.direction}",
            captions=short_captions(dataset, ids),
            page_size=8,
            cell=84,
            label=f"Group {row.direction + 1} of the failing items",
        )
