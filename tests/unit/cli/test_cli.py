"""The command line: same results as the API, exit codes, messages a person can act on."""

import json
import socket
import subprocess
import sys

import pytest
from PIL import Image

import core
from core.cli import build_parser, main
from core.cli.analyses import COMMANDS, parse_settings
from core.cli.common import plain, table
from core.errors import BadInput


def run(capsys, *argv):
    code = main([str(a) for a in argv])
    out, err = capsys.readouterr()
    return code, out, err


def test_analysis_is_the_one_of_the_api(text_space, doubler, capsys):
    code, out, _ = run(
        capsys, "explore", "--json", "--workspace", text_space.root, "--set", "factor=5"
    )
    assert code == 0
    body = json.loads(out)
    stored = core.run("explore", text_space, factor=5)
    assert doubler.calls == 1
    assert body["key"] == stored.key
    assert body["summary"]["total"] == stored.summary["total"]
    assert len(body["tables"]["rows"]) == 6


def test_text_output_begins_with_the_answer(text_space, doubler, capsys):
    code, out, _ = run(capsys, "explore", "--workspace", text_space.root)
    assert code == 0
    assert out.startswith("The sum is")
    code, out, _ = run(capsys, "explore", "--params", "--workspace", text_space.root)
    assert "factor=2" in out.splitlines()


def test_exit_codes_and_messages(text_space, doubler, capsys):
    root = text_space.root
    code, _, err = run(capsys, "explore", "--workspace", root, "--set", "dataset=absent")
    assert code == 3
    assert "no dataset 'absent'" in err
    code, _, err = run(capsys, "explore", "--workspace", root, "--set", "facter=2")
    assert code == 2
    assert "facter" in err
    code, out, _ = run(capsys, "explore", "--json", "--workspace", root, "--set", "broken")
    assert code == 2
    assert "NAME=VALUE" in json.loads(out)["error"]["message"]
    code, _, err = run(capsys, "jobs", "show", "--workspace", root)
    assert code == 2
    assert "needs an id" in err
    code, _, err = run(capsys, "jobs", "show", "nonesuch", "--workspace", root)
    assert code == 3


def test_export_writes_every_table(text_space, doubler, capsys, tmp_path):
    result = core.run("explore", text_space)
    code, out, _ = run(
        capsys, "export", "explore", "--json", "--workspace", text_space.root, "--out", tmp_path
    )
    assert code == 0
    names = [p.rsplit("/", 1)[-1] for p in json.loads(out)]
    assert names == ["rows.csv", "summary.json"]
    folder = tmp_path / f"explore-{result.key[:12]}"
    head = json.loads((folder / "summary.json").read_text())
    assert head["summary"]["total"] == result.summary["total"]
    assert head["key"] == result.key
    assert head["left_out"] == []
    code, _, err = run(capsys, "export", "transfer", "--workspace", text_space.root)
    assert code == 3
    assert "theodolite transfer" in err


def test_import_then_list(space, capsys, tmp_path):
    (tmp_path / "pets" / "cats").mkdir(parents=True)
    Image.new("RGB", (8, 8), "red").save(tmp_path / "pets" / "cats" / "a.png")
    (tmp_path / "pets" / "readme.txt").write_text("hello")
    code, out, _ = run(capsys, "import", tmp_path / "pets", "--json", "--workspace", space.root)
    assert code == 0
    assert json.loads(out)["left_out"][0]["what"] == "readme.txt"
    code, out, _ = run(capsys, "datasets", "--workspace", space.root)
    assert "pets" in out


def test_port_in_use_is_said(space, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = run(
            capsys, "ui", "--host", "127.0.0.1", "--port", port, "--workspace", space.root
        )
    assert code == 2
    assert f"Port {port}" in err
    assert f"--port {port + 1}" in err


def test_workspace_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    code, _, err = run(capsys, "datasets", "--workspace", tmp_path / "file")
    assert code == 2
    assert "theodolite:" in err


def test_module_form_and_version():
    out = subprocess.run(
        [sys.executable, "-m", "core", "--version"], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == f"theodolite {core.__version__}"


def test_every_command_has_help_and_json():
    actions = build_parser()._subparsers._group_actions[0].choices
    assert set(COMMANDS) <= set(actions)
    for parser in actions.values():
        assert parser.description
        assert "--json" in parser.format_help()


def test_settings_and_plain_values():
    assert parse_settings(["a=null", "b=x=y"]) == {"a": None, "b": "x=y"}
    with pytest.raises(BadInput):
        parse_settings(["=3"])
    assert plain({"a": float("nan"), "b": (1, float("inf"))}) == {"a": None, "b": [1, None]}
    assert table([{"a": float("nan")}], ["a"])[1] == "n/a"


def test_importing_the_api_is_light():
    code = (
        "import core, core.workspace, core.analyses, core.cli, sys;"
        "print(sorted({'torch', 'streamlit', 'plotly', 'transformers', 'umap'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
