"""Commands of the analyses: ``transfer``, ``quality``, ``contrast``, ``stitch``, ``explore``.

Their options are made from each analysis's own table of defaults, so that a new parameter
appears here by itself.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from core import analyses as registry
from core.cli import quality, stitch
from core.cli.common import Progress, command, emit, table, workspace
from core.errors import BadInput
from core.results import Result

COMMANDS = {
    "transfer": ("transfer", "Will these sources help? RADAR: layerwise divergence and blends."),
    "transfer-truth": (
        "transfer-truth",
        "What adding each blend really gained, and every measure.",
    ),
    "transfer-robustness": ("transfer-robustness", "The same ranking under every other setting."),
    "transfer-classes": ("transfer-classes", "Which class carries the divergence of each source."),
    "transfer-study": ("transfer-study", "Every encoder, target and blend: where RADAR ranks."),
    "quality": ("quality", "Which model suits my data? Label-free metrics and probes."),
    "contrast": ("contrast", "What does A see that B misses? KODA: certified clusters."),
    "contrast-study": ("contrast-study", "Contrast every pair of image encoders, both ways."),
    "align": ("alignment", "Can B learn what A holds together? An adapter on held-out halves."),
    "stitch": ("stitching", "Can I swap the encoder and keep the head? Stitching matrices."),
    "explore": ("explore", "Where is everything? A 2-D map of a dataset under an encoder."),
    "similarity": ("similarity", "How alike are encoders, or layers? CKA, neighbours, RSA."),
}


def add(commands: Any) -> None:
    """Add the analysis commands."""
    for name, (analysis, text) in COMMANDS.items():
        parser = command(commands, name, _run, text)
        parser.set_defaults(analysis=analysis)
        parser.add_argument("--force", action="store_true", help="compute again if it is stored")
        parser.add_argument(
            "--set",
            metavar="NAME=VALUE",
            action="append",
            default=[],
            help="a parameter; the value is JSON or plain text (--params lists them)",
        )
        parser.add_argument("--params", action="store_true", help="list the parameters and stop")
        if name == "stitch":
            stitch.add(parser, parse_settings)
        if name == "quality":
            quality.add(parser)


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Turn ``NAME=VALUE`` pairs into parameters.

    Examples
    --------
    >>> parse_settings(["seed=3", "target=noto", 'models=["a", "b"]'])
    {'seed': 3, 'target': 'noto', 'models': ['a', 'b']}
    """
    params: dict[str, Any] = {}
    for item in settings:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise BadInput(f"--set {item!r} is not NAME=VALUE.", "For instance: --set target=noto.")
        try:
            params[name] = json.loads(text)
        except json.JSONDecodeError:
            params[name] = text
    return params


def _run(args: argparse.Namespace) -> int:
    if args.params:
        known = registry.defaults(args.analysis)
        emit(args, known, (f"{k}={json.dumps(v)}" for k, v in known.items()))
        return 0
    settings = parse_settings(args.set)
    result = registry.run(
        args.analysis,
        workspace(args),
        progress=Progress(quiet=args.json),
        force=args.force,
        **settings,
    )
    emit(args, as_dict(result), result_lines(result))
    return 0


def as_dict(result: Result) -> dict[str, Any]:
    """Return a result as JSON types, tables as lists of rows (arrays stay in the workspace)."""
    return {
        "kind": result.kind,
        "key": result.key,
        "params": result.params,
        "summary": result.summary,
        "tables": {name: frame.to_dict("records") for name, frame in result.tables.items()},
        "left_out": [line.as_dict() for line in result.left_out],
        "seconds": result.seconds,
        "created": result.created,
        "versions": result.versions,
    }


def result_lines(result: Result) -> list[str]:
    """Return a result as plain text: headline, the first rows of each table, what was left out."""
    lines = [result.headline, ""]
    for name, frame in result.tables.items():
        shown = frame.head(12)
        scalar = [c for c in shown.columns if not shown[c].map(_is_list).any()][:8]
        lines += [f"{name} ({len(frame)} rows)"]
        lines += [*table(shown[scalar].to_dict("records"), scalar), ""]
    lines += [f"left out: {line.count} {line.what}: {line.reason}" for line in result.left_out]
    return [*lines, f"key {result.key}  computed in {result.seconds:.1f} s"]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | dict) or (
        hasattr(value, "tolist") and not hasattr(value, "item")
    )
