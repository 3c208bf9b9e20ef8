"""What else ``stitch`` does: ``stitch study``, ``stitch kit`` and ``stitch apply``.

``theodolite stitch`` alone fills the matrix, as every analysis command does.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import analyses as registry
from core.cli.common import Progress, emit, workspace


def add(parser: argparse.ArgumentParser, settings: Callable[[list[str]], dict[str, Any]]) -> None:
    """Add the actions to the parser of ``stitch``; ``settings`` reads NAME=VALUE pairs."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=False)
    study = _action(actions, "study", _study, "Every encoder on every data set: does the published "
                    "ordering hold? The stored study is shown; --force computes it.")  # fmt: skip
    study.add_argument("--force", action="store_true", help="compute what is not stored")
    study.add_argument("--set", metavar="NAME=VALUE", action="append", default=[],
                       help="a parameter of the study")  # fmt: skip
    study.set_defaults(settings=settings)
    kit = _action(actions, "kit", _kit, "Write a kit: head, anchors and whitening, to read another "
                  "encoder's features with.")  # fmt: skip
    kit.add_argument("out", type=Path, help="a folder, or a file that ends in .zip")
    kit.add_argument("--head-of", metavar="MODEL", help="whose head (default: of the best swap)")
    kit.add_argument("--encoders", metavar="MODEL", nargs="+", help="who may speak to it (all)")
    kit.add_argument("--method", metavar="NAME", help="a method with anchors (the best one)")
    kit.add_argument("--set", metavar="NAME=VALUE", action="append", default=[],
                     help="a parameter of the stitching result it is taken from")  # fmt: skip
    kit.set_defaults(settings=settings)
    use = _action(actions, "apply", _apply, "Classify a data set by a kit, with another encoder's "
                  "stored features.")  # fmt: skip
    use.add_argument("kit", type=Path, help="the folder or .zip that `stitch kit` wrote")
    use.add_argument("--model", required=True, help="whose features are read")
    use.add_argument("--dataset", required=True)
    use.add_argument("--out", metavar="CSV", type=Path, help="write one row an item")


def _action(
    actions: Any, name: str, handler: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    # Suppressed, so that `stitch --json kit` is not undone by the action's own default.
    parser.add_argument("--workspace", metavar="DIR", default=argparse.SUPPRESS,
                        help="workspace folder")  # fmt: skip
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS,
                        help="print JSON on standard output")  # fmt: skip
    parser.set_defaults(handler=handler)
    return parser


def _study(args: argparse.Namespace) -> int:
    from core.cli.analyses import as_dict, result_lines

    ws, given = workspace(args), args.settings(args.set)
    stored = None if args.force or given else registry.current("stitching-study", ws)
    result = stored or registry.run(
        "stitching-study", ws, progress=Progress(quiet=args.json), force=args.force, **given
    )
    emit(args, as_dict(result), result_lines(result))
    return 0


def _kit(args: argparse.Namespace) -> int:
    from core.stitching.kit import build_kit
    from core.stitching.kit_files import kit_about, save_kit

    ws = workspace(args)
    result = registry.run(
        "stitching", ws, progress=Progress(quiet=args.json), **args.settings(args.set)
    )
    kit = build_kit(ws, result, head_of=args.head_of, encoders=args.encoders, method=args.method)
    path = save_kit(kit, args.out)
    about = {**kit_about(kit), "path": str(path)}
    lines = [f"{path}: head of {kit.head_of}, {len(kit.mixing)} anchors, {about['method_title']}"]
    lines += [
        f"  reads {name}: {100 * known.accuracy:.1f} % of {about['n_test']} test items"
        for name, known in kit.encoders.items()
    ]
    emit(args, about, lines)
    return 0


def _apply(args: argparse.Namespace) -> int:
    from core.stitching.kit_files import load_kit
    from core.stitching.kit_use import classify

    found = classify(workspace(args), load_kit(args.kit), args.model, args.dataset)
    if args.out is not None:
        from core.data.export import write_csv

        write_csv(found.table, args.out)
    counts = Counter(found.table["predicted"])
    body = {
        "model": args.model, "dataset": args.dataset, "n": len(found.table),
        "layer": found.layer, "joined": found.joined, "accuracy": found.accuracy,
        "n_labelled": found.n_labelled, "predicted": dict(counts.most_common()),
        "ids": found.table["id"].tolist(), "labels": found.table["predicted"].tolist(),
    }  # fmt: skip
    lines = [f"{len(found.table):,} items of {args.dataset}, features of {args.model}"]
    if found.joined:
        lines.append("  not in the kit: its whitening and anchors were fitted here, without labels")
    lines += [f"  {name}: {count:,}" for name, count in counts.most_common()]
    if found.accuracy is not None:
        lines.append(f"  right on {100 * found.accuracy:.1f} % of {found.n_labelled:,} test items")
    emit(args, body, lines)
    return 0
