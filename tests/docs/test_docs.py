"""What the README and the contributor's page say is true."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from core import analyses
from core.cli import build_parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = sorted(p.stem for p in (ROOT / "pages").glob("*.py") if not p.stem.startswith("_"))


def test_readme_names_both_commands():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    for command in ("run", "test"):
        assert f"make {command}" in README
        assert command in targets


@pytest.mark.parametrize("name", sorted(build_parser()._subparsers._group_actions[0].choices))
def test_every_command_is_in_the_readme(name):
    assert f"theodolite {name}" in README


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_its_picture_in_the_readme(page):
    link = f"assets/screenshots/{page}-wide-light.png"
    assert link in README
    assert (ROOT / link).stat().st_size > 10_000


@pytest.mark.parametrize("name", analyses.names())
def test_every_analysis_is_in_the_readme(name):
    assert name in README.lower()


def test_links_lead_somewhere():
    for text in (README, (ROOT / "CONTRIBUTING.md").read_text()):
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / link).exists(), link


def test_python_example_of_the_readme_runs(tmp_path):
    example = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    code = f"import os; os.environ['THEODOLITE_HOME'] = {str(tmp_path / 'space')!r}\n" + example
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip()


def test_declared_dependencies_are_the_clients():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[A-Za-z0-9_.-]+", d).group(0).lower() for d in project["dependencies"]}
    wanted = {
        "streamlit", "plotly", "umap-learn", "torch", "open_clip_torch", "transformers", "numpy",
        "scikit-learn", "faiss-cpu",
    }  # fmt: skip
    assert wanted <= names
    # A declared package that nothing imports would be a lie of its own.
    modules = {
        "umap-learn": "umap", "open_clip_torch": "open_clip", "scikit-learn": "sklearn",
        "faiss-cpu": "faiss",
    }  # fmt: skip
    sources = (
        "\n".join(p.read_text() for d in ("core", "pages") for p in (ROOT / d).rglob("*.py"))
        + (ROOT / "app.py").read_text()
    )
    for name in wanted:
        module = modules.get(name, name)
        assert re.search(rf"^\s*(import|from) {module}\b", sources, re.M), name
