"""Take a swap along: choose whose head and who may read it, download the kit, see how to use it."""

from __future__ import annotations

import shlex

import streamlit as st

from core.results import Result
from core.stitching.methods import METHODS, method_of
from pages._shell import state
from pages._shell.state import workspace
from pages._shell.stitching_view import PAGE
from pages._shell.words import percent


def draw(result: Result) -> None:
    """Draw the export of the kit, with the command that does the same."""
    methods = [m for m in result.tables["summary"]["method"] if not method_of(m).translator]
    if not methods:
        st.caption("Only maps per pair were run; a kit needs a method with anchors.")
        return
    if result.params["head"] == "tanh":
        st.caption("A kit holds a linear head; choose the logistic or the ridge head in Settings.")
        return
    models, names = result.params["models"], result.summary["titles"]
    best = result.tables["advice"].sort_values("retention").iloc[-1]
    left, middle, right = st.columns(3)
    with left:
        # The default comes first: a link leaves out a choice that equals the first option.
        offered = sorted(models, key=lambda m: m != best["i"])
        head_of = state.select(PAGE, "kit_head", "Head of", offered, show=names.get)
    with middle:
        others = [m for m in models if m != head_of]
        readers = state.choose_many(PAGE, "kit_for", "To be read by", others, show=names.get)
    with right:
        method = state.select(PAGE, "kit_method", "Method", methods,
                              show=lambda m: METHODS[m].title)  # fmt: skip
    cells = result.tables["cells"].set_index(["method", "i", "j"])
    reach = [f"{names[j]} {percent(cells.loc[(method, head_of, j), 'accuracy'])}" for j in readers]
    st.caption(
        "The kit holds the head, the anchors as mixing weights and item ids, and each encoder's "
        "whitening: numbers as safetensors, words as JSON, and ten lines of Python that read it "
        f"with numpy alone. On the test items: {', '.join(reach) or 'no other encoder chosen'}."
    )
    st.download_button(
        "Download the kit",
        lambda: _kit(result, head_of, readers, method),
        f"stitching-kit-{head_of.rpartition('/')[2]}.zip",
        "application/zip",
        key="stitching_kit_download",
        on_click="ignore",
        type="primary",
    )
    with st.expander("Use it"):
        used = readers[0] if readers else head_of
        command = ["theodolite", "stitch", "apply", "stitching-kit.zip", "--model", used]
        st.code(shlex.join([*command, "--dataset", result.params["dataset"]]), language="bash",
                wrap_lines=True)  # fmt: skip
        st.code("python example.py features.npy " + shlex.quote(used), language="bash",
                wrap_lines=True)  # fmt: skip
        st.caption(
            "An encoder that is not in the kit joins it by its features of the kit's training "
            "items; no label is read and the head stays as it is."
        )


def _kit(result: Result, head_of: str, readers: list[str], method: str) -> bytes:
    from core.stitching.kit import build_kit
    from core.stitching.kit_files import kit_zip

    kit = build_kit(
        workspace(), result, head_of=head_of, encoders=[head_of, *readers], method=method
    )
    return kit_zip(kit)
