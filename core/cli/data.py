"""Commands of the data: ``datasets``, ``models``, ``extract``, ``export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.common import Progress, command, emit, plain, table, workspace
from core.errors import BadInput, NotFound

if TYPE_CHECKING:
    from core.workspace import Workspace


def add(commands: Any) -> None:
    """Add the commands."""
    command(commands, "datasets", _datasets, "List the datasets of the workspace.")

    models = command(commands, "models", _models, "List encoders, or fetch the demo's weights.")
    models.add_argument(
        "action", nargs="?", default="list", choices=["list", "fetch", "fetch-demo"]
    )
    models.add_argument("ids", nargs="*", help="fetch only these encoders")

    extract = command(commands, "extract", _extract, "Compute the features of a dataset.")
    extract.add_argument("dataset")
    extract.add_argument("model")
    extract.add_argument("--layers", default="all", help="all, default, or names with commas")
    extract.add_argument("--pooling", help="cls or mean, where the encoder offers both")
    extract.add_argument("--batch-size", type=int, default=16)
    extract.add_argument("--device", help="auto, cpu or cuda")

    export = command(commands, "export", _export, "Write the tables of a result or a dataset.")
    export.add_argument("key", help="a result's key, an analysis's name, or a dataset")
    export.add_argument("--out", type=Path, default=Path(), help="folder (default: here)")
    export.add_argument("--format", choices=["csv", "parquet"], default="csv")


def _datasets(args: argparse.Namespace) -> int:
    space = workspace(args)
    rows = []
    for name in space.dataset_names():
        data = space.dataset(name)
        rows.append({"name": name, "kind": data.kind, "n": data.n, "digest": data.digest[:12]})
    empty = ["No datasets yet. Lay the demo ready with: theodolite demo --prepare."]
    emit(args, rows, table(rows, ["name", "kind", "n", "digest"]) if rows else empty)
    return 0


def _models(args: argparse.Namespace) -> int:
    space = workspace(args)
    if args.action == "fetch-demo":
        from core.encoders.fetch import fetch_demo

        report = fetch_demo(space, only=args.ids or None, progress=Progress(quiet=args.json))
        emit(args, report, [f"{name}: {state}" for name, state in report.items()])
        return 0
    if args.action == "fetch":
        from core.encoders.fetch_hub import fetch_models

        done = fetch_models(space, ids=args.ids, progress=Progress(quiet=args.json))
        emit(args, done, [f"{name}: {state}" for name, state in done.items()])
        return 0
    from core.encoders import list_models

    rows = [plain(vars(model)) for model in list_models(workspace=space)]
    columns = ["id", "title", "modality", "dim", "params_m", "licence", "status"]
    emit(args, rows, table(rows, columns))
    return 0


def _extract(args: argparse.Namespace) -> int:
    from core.extract import run_extract

    layers: str | list[str] = args.layers
    if layers not in ("all", "default"):
        layers = [name.strip() for name in args.layers.split(",") if name.strip()]
    if args.batch_size < 1:
        raise BadInput(f"--batch-size {args.batch_size} is below 1.", "Choose 1 or more.")
    features = run_extract(
        workspace(args), args.dataset, args.model, layers=layers, pooling=args.pooling,
        batch_size=args.batch_size, device=args.device, progress=Progress(quiet=args.json),
    )  # fmt: skip
    left_out = features.meta.get("left_out", [])
    body = {"key": features.key, "n": len(features), "layers": features.layers,
            "left_out": left_out, "cut_texts": features.meta.get("cut_texts")}  # fmt: skip
    lines = [f"{len(features):,} rows, {len(features.layers)} layers, key {features.key[:12]}"]
    lines += [f"left out: {line['what']}: {line['reason']}" for line in left_out]
    cut = features.meta.get("cut_texts") or {"n": 0}
    if cut["n"]:
        lines.append(f"{cut['n']:,} texts are read up to their first {cut['limit']} tokens only")
    emit(args, body, lines)
    return 0


def _export(args: argparse.Namespace) -> int:
    from core import analyses
    from core.cli.analyses import COMMANDS

    space = workspace(args)
    kind = COMMANDS.get(args.key, (args.key,))[0]
    if kind in analyses.names():
        result = space.results.latest(kind)
        if result is None:
            raise NotFound(f"No {kind} result is stored yet.", f"Run: theodolite {args.key}.")
    elif args.key in space.dataset_names():
        return _export_dataset(args, space)
    else:
        result = space.results.get(args.key)
    folder = args.out / f"{result.kind}-{result.key[:12]}"
    written = [str(path) for path in space.results.export(result.key, folder, format=args.format)]
    emit(args, written, written)
    return 0


def _export_dataset(args: argparse.Namespace, space: Workspace) -> int:
    from core.data.export import write_csv
    from core.workspace.files import storing

    folder = args.out / args.key
    tables = {"items": space.dataset(args.key).items,
              "outcome": space.datasets.report(args.key).table()}  # fmt: skip
    written = [folder / f"{name}.{args.format}" for name in tables]
    for path, frame in zip(written, tables.values(), strict=True):
        if args.format == "csv":
            write_csv(frame, path)
            continue
        with storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            frame.to_parquet(path, index=False)
    emit(args, [str(path) for path in written], [str(path) for path in written])
    return 0
