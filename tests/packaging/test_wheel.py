"""The built wheel, installed away from the checkout, opens the app from any folder."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder that holds the wheel's content and nothing of the checkout."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), ROOT],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    (wheel,) = out.glob("theodolite-*.whl")
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, wheel],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return target


def test_wheel_holds_the_app_and_no_strangers(site):
    assert (site / "core" / "_app" / "app.py").is_file()
    assert (site / "core" / "_app" / "pages" / "_shell" / "main.py").is_file()
    assert (site / "core" / "_app" / "assets" / "demo").is_dir()
    assert (site / "core" / "_app" / ".streamlit" / "config.toml").is_file()
    # Nothing of ours may lie at the top of site-packages but `core`.
    tops = {p.name for p in site.iterdir() if not p.name.endswith(".dist-info")}
    assert tops <= {"core", "bin", "__pycache__"}


def test_ui_from_any_folder(site, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = dict(os.environ, PYTHONPATH=str(site), THEODOLITE_HOME=str(tmp_path / "space"))
    server = subprocess.Popen(
        [sys.executable, "-m", "core", "ui", "--headless", "--host", "127.0.0.1",
         "--port", str(port)],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health", server)
        _wait(f"http://127.0.0.1:{port}/ready", server)
        where = subprocess.run(
            [sys.executable, "-c", "import core.paths as p; print(p.app_root())"],
            cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        assert where == str(site / "core" / "_app")
    finally:
        os.killpg(server.pid, 15)
        server.wait(20)


def _wait(url: str, server: subprocess.Popen, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"The server ended: {server.stdout.read()}")
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                assert answer.status == 200
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    pytest.fail(f"{url} did not answer in {seconds} s")


def test_wheel_is_of_a_bearable_size(site):
    total = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    assert total < 160 * 2**20
    assert not any(zipfile.is_zipfile(p) and p.suffix == ".whl" for p in site.rglob("*"))
