"""``stitch kit`` and ``stitch apply`` on the command line, in fresh processes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.cli import main
from core.workspace import open_workspace

SETTINGS = [
    *("--set", 'models=["demo/minilm-l6", "demo/use-m3"]', "--set", 'methods=["wip-mixture"]'),
    *("--set", "seeds=1", "--set", "shrink=0.5", "--set", "n_anchors=20"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """The demo as it is shipped, in a workspace."""
    from core.data.demo import prepare

    folder = tmp_path_factory.mktemp("kit-home")
    prepare(open_workspace(folder))
    return folder


def run(home: Path, *words: str) -> dict:
    """Run the command line in a process of its own and return its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "core", "stitch", *words, "--workspace", str(home), "--json"],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_a_kit_is_written_and_applied_with_the_same_predictions(home, tmp_path):
    from core.stitching import load_kit

    made = run(home, "kit", str(tmp_path / "kit.zip"), "--set", "dataset=names", *SETTINGS,
               "--head-of", "demo/use-m3")  # fmt: skip
    assert made["head_of"] == "demo/use-m3"
    out = tmp_path / "said.csv"
    said = run(home, "apply", str(tmp_path / "kit.zip"), "--model", "demo/minilm-l6",
               "--dataset", "names", "--out", str(out))  # fmt: skip
    kit = load_kit(tmp_path / "kit.zip")
    features = open_workspace(home).features.get("names", "demo/minilm-l6")
    expected = kit.predict("demo/minilm-l6", np.asarray(features.layer()))
    assert said["labels"] == expected.tolist()
    assert not said["joined"]
    assert abs(said["accuracy"] - kit.encoders["demo/minilm-l6"].accuracy) < 1e-12
    with out.open() as handle:
        assert [row["predicted"] for row in csv.DictReader(handle)] == expected.tolist()
    # An encoder that the kit does not hold joins it, without a label.
    other = run(home, "apply", str(tmp_path / "kit.zip"), "--model", "demo/minilm-l6-int8",
                "--dataset", "names")  # fmt: skip
    assert other["joined"]
    same = np.mean(np.array(other["labels"]) == expected)
    assert same > 0.9  # a rounded copy of the encoder says nearly the same


def test_stitch_alone_is_the_analysis_as_before(home, capsys):
    assert main(["stitch", "--params", "--json", "--workspace", str(home)]) == 0
    assert json.loads(capsys.readouterr().out)["n_anchors"] == 100


def test_errors_are_named(home, tmp_path, capsys):
    words = ["--model", "demo/use-m3", "--dataset", "names", "--workspace", str(home)]
    assert main(["stitch", "apply", str(tmp_path / "none"), *words]) == 3
    assert "no kit at" in capsys.readouterr().err
