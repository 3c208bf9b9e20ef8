"""Render the demo's data sets from pinned packages.

Fetch the packages of ``sources.json`` into one folder, each with the command beside it
(``npm pack ...``, ``apt-get download ...``), install ``resvg-py==0.5.0``, and run::

    python assets/build/build_data.py FOLDER [--out assets/demo] [--rest emoji_rest.parquet]

Every package is compared with its SHA-256 before it is read, and is only ever read as data.
The choice of pictures is seeded: the same packages give the same items. The bytes of a
picture depend on the WebP library, so a rebuild elsewhere may change their digests.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import clipart_set
import emoji_set
from packing import verify

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Verify the packages, then write the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", type=Path, help="folder with the downloaded packages")
    parser.add_argument("--out", type=Path, default=HERE.parent / "demo", help="where sets go")
    parser.add_argument("--rest", type=Path, help="also write the emoji outside the demo here")
    parser.add_argument("--only", choices=["emoji", "clipart"], help="build one set only")
    args = parser.parse_args()
    verify(args.packages, json.loads((HERE / "sources.json").read_text()))
    if args.only in (None, "emoji"):
        print("emoji and names", emoji_set.build(args.packages, args.out, args.rest))
    if args.only in (None, "clipart"):
        print("clipart", clipart_set.build(args.packages, args.out / "clipart"))


if __name__ == "__main__":
    main()
