"""Commands of the house: ``ui``, ``demo``, ``jobs``, ``doctor``, ``gc``."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from typing import Any

from core.cli.common import Progress, command, emit, table, workspace
from core.errors import BadInput, NotFound


def add(commands: Any) -> None:
    """Add the commands."""
    ui = command(commands, "ui", _ui, "Open the app in the browser.")
    ui.add_argument("--port", type=int, default=8501, help="port on this machine (default 8501)")
    ui.add_argument("--host", default="localhost", help="address to listen on (default localhost)")
    ui.add_argument("--headless", action="store_true", help="do not open a browser")

    demo = command(
        commands, "demo", _demo, "Recompute the demo from raw data and compare with what ships."
    )
    demo.add_argument("--prepare", action="store_true", help="only lay the shipped demo ready")
    demo.add_argument("--no-fetch", action="store_true", help="leave out encoders not on this disk")
    demo.add_argument("--studies", action="store_true", help="recompute the studies too (long)")

    jobs = command(commands, "jobs", _jobs, "List, cancel or resume jobs.")
    jobs.add_argument(
        "action", nargs="?", default="list", choices=["list", "show", "cancel", "resume", "log"]
    )
    jobs.add_argument("id", nargs="?", help="the job's id")

    doctor = command(
        commands, "doctor", _doctor, "Check the workspace: digests, orphans, lost jobs."
    )
    doctor.add_argument(
        "--fix", action="store_true", help="drop damaged features and results, to compute again"
    )
    gc = command(commands, "gc", _gc, "Remove files nothing refers to.")
    gc.add_argument("--dry-run", action="store_true", help="say what would go, remove nothing")


def _ui(args: argparse.Namespace) -> int:
    from core.paths import app_root

    space = workspace(args)
    _check_port(args.host, args.port)
    env = dict(os.environ, THEODOLITE_HOME=str(space.root))
    # Threads that spin while they wait slow a two-core machine down up to fifty times.
    env.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    headless = args.headless or not (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or
        os.environ.get("WAYLAND_DISPLAY")
    )  # fmt: skip
    line = [
        sys.executable, "-m", "streamlit", "run", str(app_root() / "app.py"),
        "--server.port", str(args.port), "--server.address", args.host,
        "--server.headless", str(headless).lower(),
    ]  # fmt: skip
    print(f"Theodolite: http://{args.host}:{args.port}  workspace {space.root}", flush=True)
    return subprocess.call(line, env=env, cwd=str(app_root()))


def _check_port(host: str, port: int) -> None:
    if not 1 <= port <= 65535:
        raise BadInput(f"--port {port} is not a port.", "Choose one from 1024 to 65535.")
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as err:
            raise BadInput(
                f"Port {port} on {host} cannot be used: {err.strerror or err}.",
                f"Is the app open already? Else try: theodolite ui --port {port + 1}.",
            ) from err


def _demo(args: argparse.Namespace) -> int:
    space = workspace(args)
    progress = Progress(quiet=args.json)
    if args.prepare:
        from core.data.demo import prepare

        report = prepare(space, progress=progress)
        emit(args, report, [f"The demo is ready in {space.root}."])
        return 0
    from core.data.bake import recompute_demo

    report = recompute_demo(space, progress=progress, fetch=not args.no_fetch, studies=args.studies)
    columns = ["step", "seconds", "peak_mb", "max_deviation", "tolerance", "ok"]
    rows = table(report["steps"], columns)
    closing = "All equal within tolerance." if report["ok"] else "Not equal: see the lines above."
    emit(args, report, [*rows, "", closing])
    return 0 if report["ok"] else 1


def _jobs(args: argparse.Namespace) -> int:
    space = workspace(args)
    if args.action == "list":
        jobs = [vars_of(job) for job in space.jobs.list()]
        columns = ["id", "kind", "state", "progress", "message", "created"]
        emit(args, jobs, table(jobs, columns) if jobs else ["No jobs yet."])
        return 0
    if not args.id:
        raise BadInput(f"jobs {args.action} needs an id.", "List them with: theodolite jobs.")
    job = space.jobs.get(args.id)
    if args.action == "cancel":
        space.jobs.cancel(args.id)
    elif args.action == "resume":
        space.jobs.resume(args.id)
    elif args.action == "log":
        try:
            print(job.log_path.read_text(errors="replace"), end="")
        except (OSError, AttributeError) as err:
            raise NotFound(f"Job {args.id} has no log yet.", "It has not started.") from err
        return 0
    body = vars_of(space.jobs.get(args.id))
    emit(args, body, [f"{name}: {value}" for name, value in body.items()])
    return 0


def vars_of(job: Any) -> dict[str, Any]:
    """Return a job as plain values."""
    from dataclasses import asdict

    return {name: str(v) if hasattr(v, "parts") else v for name, v in asdict(job).items()}


def _doctor(args: argparse.Namespace) -> int:
    findings = workspace(args).doctor(fix=args.fix)
    lines = [str(finding) for finding in findings] or ["Nothing amiss."]
    emit(args, findings, lines)
    return 0 if not findings else 1


def _gc(args: argparse.Namespace) -> int:
    removed = workspace(args).gc(dry_run=args.dry_run)
    verb = "would be removed" if args.dry_run else "removed"
    lines = [*map(str, removed), f"{len(removed)} files {verb}."]
    emit(args, removed, lines)
    return 0
