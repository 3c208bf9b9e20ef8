"""``python -m core.quality.zoo``: train and measure the 260 networks, or assemble the table."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from core.errors import UserError
from core.quality.zoo.run import assemble, correlate, run
from core.quality.zoo.sets import study_dir


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m core.quality.zoo", description=__doc__)
    parser.add_argument("step", nargs="?", choices=("run", "assemble"), default="run")
    parser.add_argument("--out", type=Path, required=True, help="folder of the row files")
    parser.add_argument("--models", default=":", help="range of the plan, for instance 0:50")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--table", type=Path, default=study_dir() / "zoo.parquet")
    args = parser.parse_args(argv)
    first, _, last = args.models.partition(":")
    try:
        if args.step == "assemble":
            _say(json.dumps(assemble(args.out, args.table), indent=1))
            _say(f"{len(correlate(args.table))} correlations")
        else:
            done = run(
                args.out, first=int(first or 0), last=int(last) if last else None,
                workers=args.workers, device=args.device, report=_say,
            )  # fmt: skip
            _say(f"{done} models trained and measured; row files in {args.out}")
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
