"""Commands of one's own data: ``import`` and ``report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cli.common import Progress, command, emit, table, workspace

if TYPE_CHECKING:
    from core.data.importers import OutcomeReport, Plan, Preview

_ROLES = {
    "image": "pictures: paths, bytes, base64", "label": "classes", "domain": "domains",
    "split": "splits", "caption": "captions", "text": "texts, where there are no pictures",
    "id": "ids, one a row",
}  # fmt: skip
# What a table beside features says of their rows: they have no pictures.
_DESCRIBED = ("label", "domain", "split", "caption", "id")
# So many lines of a report are printed; --json and --out give all of them.
_LINES = 40


def add(commands: Any) -> None:
    """Add the commands."""
    text = "Import pictures, captions or texts: a folder, zip, CSV, JSONL, Parquet or Arrow."
    imp = command(commands, "import", _import, text)
    imp.add_argument("path", help="folder, archive or table; or hf:NAME with `datasets` installed")
    imp.add_argument("--name", help="name of the dataset (default: made from the path)")
    imp.add_argument("--title", help="the name people read")
    for role, what in _ROLES.items():
        imp.add_argument(f"--{role}", metavar="COL", help=f"column of the {what}; none: no column")
    imp.add_argument("--ignore", metavar="COL", action="append", default=[],
                     help="leave a column away; may be given again")  # fmt: skip
    imp.add_argument("--table", type=Path, help="table beside the pictures that names their files")
    imp.add_argument("--encoding", help="of a text table (default: detected)")
    imp.add_argument("--separator", help="of a CSV table (default: detected); tab for a tab")
    imp.add_argument("--header", choices=["yes", "no"], help="whether line 1 names the columns")
    imp.add_argument("--first-frame", action="store_true", help="take an animation's first frame")
    imp.add_argument("--licence", default="", help="kept with the dataset")
    imp.add_argument("--note", default="", help="kept with the dataset")
    imp.add_argument("--replace", action="store_true", help="replace a dataset of that name")
    imp.add_argument(
        "--preview", action="store_true", help="show what would be taken, take nothing"
    )

    feats = command(
        commands,
        "import-features",
        _features,
        "Import features: npy, npz, safetensors, Parquet, HDF5.",
    )
    _add_features(feats)

    rep = command(commands, "report", _report, "What an import took, left out and repaired.")
    rep.add_argument("dataset")
    rep.add_argument("--out", type=Path, help="write every line to this CSV file")


def _add_features(feats: argparse.ArgumentParser) -> None:
    add = feats.add_argument
    add("path", type=Path)
    whose = feats.add_mutually_exclusive_group(required=True)
    whose.add_argument("--dataset", help="whose items the rows are")
    whose.add_argument("--new-dataset", metavar="NAME", help="make a dataset of the file's rows")
    add("--name", help="name of the model (default: made from the file's)")
    add("--ids", default="", metavar="COL", help="array or column of the ids; none: it has none")
    add("--match", default="", metavar="COL", help="the dataset's column the ids are values of")
    add("--in-order", action="store_true",
        help="the file has no ids; its rows are the dataset's items (or the table's) in their "
             "order")  # fmt: skip
    add("--partial", action="store_true", help="join the rows that match, report the others")
    add("--keep-flat", action="store_true", help="take rows that are all zero or all one value")
    add("--layers", default="", help="take these layers alone, by commas (default: all)")
    add("--layer", default="", help="default layer (default: the last)")
    add("--layer-axis", type=int, choices=[0, 1, 2],
        help="axis of a three-dimensional array that counts layers")  # fmt: skip
    add("--replace", action="store_true", help="take the place of other features of that name")
    add("--table", type=Path,
        help="with --new-dataset: a table with a row for each row of the file (default: the "
             "file's own columns)")  # fmt: skip
    for role in _DESCRIBED:
        add(f"--{role}", metavar="COL", help=f"with --new-dataset: column of the {_ROLES[role]}; "
                                             "none: no column")  # fmt: skip
    add("--preview", action="store_true", help="show what would be taken, take nothing")


def _import(args: argparse.Namespace) -> int:
    from core.data.importers import import_dataset, opened, preview

    space = workspace(args)
    separator = "\t" if args.separator == "tab" else args.separator
    header = None if args.header is None else args.header == "yes"
    with opened(str(args.path), _text(args.table), args.encoding, separator, header) as source:
        found = preview(source, taken_names=[] if args.replace else space.dataset_names())
        plan = _plan(args, found.plan)
        if args.preview:
            emit(args, {**found.as_dict(), "plan": plan.as_dict()}, _preview_lines(found, plan))
            return 0
        data = import_dataset(space, source, plan, progress=Progress(quiet=args.json))
    report = space.datasets.report(data.name)
    body = {"name": data.name, "n": data.n, "kind": data.kind, **report.as_dict()}
    emit(args, body, [f"{data.name}: {data.n:,} items.", *_report_lines(report)])
    return 0


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _plan(args: argparse.Namespace, guessed: Plan) -> Plan:
    from dataclasses import replace

    changes = {
        role: None if given == "none" else given
        for role in _ROLES
        if (given := getattr(args, role)) is not None
    }
    plan = guessed.with_roles(changes)
    if changes.get("image") is not None and "caption" not in changes:
        # A text is a caption as soon as there is a picture beside it.
        plan = plan.with_roles({"text": None, "caption": plan.column("text")})
    for column in args.ignore:
        plan = plan.with_roles({"ignore": column})
    return replace(
        plan,
        name=args.name or plan.name,
        title=args.title or plan.title,
        first_frame=args.first_frame,
        licence=args.licence,
        note=args.note,
        replace=args.replace,
    )


def _preview_lines(found: Preview, plan: Plan) -> list[str]:
    rows = "unknown" if found.n is None else f"{found.n:,}"
    lines = [f"{found.title}: {found.form}, rows: {rows}, dataset: {plan.name}"]
    lines += [f"{name}: {value}" for name, value in found.facts.items()]
    columns = [
        {"column": c.name, "role": plan.roles[c.name], "why": c.why, "first": c.example}
        for c in found.columns
    ]
    lines += ["", *table(columns, ["column", "role", "why", "first"]), ""]
    lines += [f"note: {note}" for note in found.notes]
    lines += [f"left out: {line.what}: {line.reason}" for line in found.left_out[:_LINES]]
    return lines


def _report(args: argparse.Namespace) -> int:
    from core.data.export import write_csv

    report = workspace(args).datasets.report(args.dataset)
    if args.out is not None:
        write_csv(report.table(), args.out)
    emit(args, report.as_dict(), _report_lines(report))
    return 0


def _report_lines(report: OutcomeReport) -> list[str]:
    lines = [report.headline]
    lines += [f"{name}: {value}" for name, value in report.facts.items()]
    lines += [f"note: {note}" for note in report.notes]
    lines += [f"left out: {x.what}: {x.reason}" for x in report.left_out[:_LINES]]
    if len(report.left_out) > _LINES:
        lines.append(f"and {len(report.left_out) - _LINES:,} more; --json gives all of them")
    from core.data.importers.outcome import short_repaired

    return lines + [f"repaired: {x.what}: {x.how}" for x in short_repaired(report.repaired)]


def _features(args: argparse.Namespace) -> int:
    from core.data.feature_import import import_features

    if args.new_dataset:
        return _features_alone(args)
    if args.preview:
        return _preview_features(args)
    found = import_features(
        workspace(args), dataset=args.dataset, partial=args.partial, replace=args.replace,
        match=args.match, in_order=args.in_order, **_common(args),
    )  # fmt: skip
    _emit_features(args, found)
    return 0


def _common(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "path": args.path, "name": args.name or args.path.stem, "ids": args.ids,
        "keep_flat": args.keep_flat, "layers": [n for n in args.layers.split(",") if n],
        "default_layer": args.layer, "layer_axis": args.layer_axis,
        "progress": Progress(quiet=args.json),
    }  # fmt: skip


def _emit_features(args: argparse.Namespace, found: Any) -> None:
    left_out = found.meta.get("left_out", [])
    body = {"model": found.model, "dataset": found.dataset, "n": len(found),
            "layers": found.layers, "joined_by": found.meta["joined_by"],
            "left_out": left_out, "key": found.key}  # fmt: skip
    lines = [f"{found.model} on {found.dataset}: {len(found):,} rows, layers "
             f"{', '.join(found.layers)}"]  # fmt: skip
    lines += [f"{name}: {how}" for name, how in found.meta["layered"].items()]
    lines += [f"{line['what']}: {line['reason']} ({line['count']})" for line in left_out]
    emit(args, body, lines)


def _preview_features(args: argparse.Namespace) -> int:
    from core.data.feature_import import preview_features

    found = preview_features(
        workspace(args), args.dataset, args.path, ids=args.ids, match=args.match,
        layer_axis=args.layer_axis,
    )  # fmt: skip
    lines = [f"{found.n:,} rows, ids: {found.id_name or 'none'}, {found.n_matched:,} of them match"]
    lines += [f"layer {name}: {width} wide, {kind}" for name, (width, kind) in found.layers.items()]
    lines += [f"{name}: {how}" for name, how in found.layered.items()]
    lines += [f"left out: {name}: {why}" for name, why in found.skipped.items()]
    lines += [f"problem: {found.problem} {found.hint}"] if found.problem else []
    emit(args, dict(vars(found)), lines)
    return 0


def _features_alone(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from core.data.feature_dataset import import_feature_dataset, preview_feature_dataset

    space = workspace(args)
    shown = preview_feature_dataset(
        args.path, args.table, layer_axis=args.layer_axis, scratch=space.root
    )
    changes = {
        role: None if given == "none" else given
        for role in _DESCRIBED
        if (given := getattr(args, role)) is not None
    }
    plan = replace(shown.plan.with_roles(changes), name=args.new_dataset)
    if args.preview:
        emit(args, {**shown.as_dict(), "plan": plan.as_dict()}, _preview_lines(shown, plan))
        return 0
    found = import_feature_dataset(
        space, plan=plan, table=args.table, in_order=args.in_order, **_common(args)
    )
    _emit_features(args, found)
    return 0
