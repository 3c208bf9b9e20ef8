"""What else ``quality`` does: ``quality study`` measures the registry's models on a data set.

``theodolite quality`` alone compares the encoders with features, as every analysis command does.
"""

from __future__ import annotations

import argparse
from typing import Any

from core import analyses as registry
from core.cli.common import Progress, emit, table, workspace
from core.results import Result

#: Failures shown as text; --json and the stored table have all.
SHOWN = 12


def add(parser: argparse.ArgumentParser) -> None:
    """Add the action to the parser of ``quality``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=False)
    text = (
        "Measure pretrained models of the registry on a data set of pictures: every metric, two "
        "probes, correlations across models. Stopped, it goes on where it was; what failed is "
        "tried again."
    )
    study = actions.add_parser("study", help=text, description=text)
    # Suppressed, so that `quality --json study` is not undone by the action's own default.
    study.add_argument("--workspace", metavar="DIR", default=argparse.SUPPRESS,
                       help="workspace folder")  # fmt: skip
    study.add_argument("--json", action="store_true", default=argparse.SUPPRESS,
                       help="print JSON on standard output")  # fmt: skip
    study.add_argument("--models", nargs="+", default=["core260"], metavar="MODEL",
                       help="core260, all (554), or model ids")  # fmt: skip
    study.add_argument("--dataset", required=True, help="a data set of the workspace")
    study.add_argument("--label", default="label", help="the column of classes")
    study.add_argument("--max-rows", type=int, default=10_000, help="rows the metrics rest on")
    study.add_argument("--batch-size", type=int, default=16)
    study.add_argument("--device", default="", help="auto, cpu or cuda")
    study.set_defaults(handler=_study)


def _study(args: argparse.Namespace) -> int:
    from core.quality.registry import POPULATIONS

    whole = len(args.models) == 1 and args.models[0] in POPULATIONS
    chosen: dict[str, Any] = (
        {"population": args.models[0]} if whole else {"models": list(args.models)}
    )
    # Always computed: what is finished is kept model by model, and weights may have come.
    result = registry.run(
        "model-study", workspace(args), progress=Progress(quiet=args.json), force=True,
        dataset=args.dataset, label=args.label, max_rows=args.max_rows,
        batch_size=args.batch_size, device=args.device, **chosen,
    )  # fmt: skip
    emit(args, _as_dict(result), _lines(result))
    return 0


def _as_dict(result: Result) -> dict[str, Any]:
    return {"key": result.key, "summary": result.summary,
            "models": result.tables["models"].to_dict("records")}  # fmt: skip


def _lines(result: Result) -> list[str]:
    models = result.tables["models"]
    done = models["state"].isin(["measured", "kept"])
    lines = [result.headline, ""]
    if done.any():
        rows = result.tables["rows"].merge(models[["model", "state", "cpu_s", "peak_mib"]])
        columns = ["model", "architecture", "d", "metric.rankme", "metric.ne_sum", "metric.twonn",
                   "linear", "knn", "state", "cpu_s", "peak_mib"]  # fmt: skip
        lines += [*table(rows[columns].to_dict("records"), columns), ""]
    gone = models[~done]
    lines += [f"{row.model}: {row.state}: {row.reason}" for row in gone.head(SHOWN).itertuples()]
    if len(gone) > SHOWN:
        lines += [f"and {len(gone) - SHOWN} more; all with: theodolite export model-study"]
    return [*lines, f"key {result.key}  {result.summary['cpu_s']} CPU s"]
