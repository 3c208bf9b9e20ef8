"""Launcher: `theodolite ui`, `streamlit run app.py`, `python app.py` and `uvicorn app:app`.

The script that draws the app is ``pages/_shell/main.py``. It must not lie beside ``pages/``:
Streamlit would then serve a page file by itself on a cold deep link, past the shell's gate.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Before anything imports torch: threads that spin while they wait slow a small machine down.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from pages._shell.server import ROUTES, lifespan  # noqa: E402

app = st.App(ROOT / "pages" / "_shell" / "main.py", lifespan=lifespan, routes=ROUTES)

if __name__ == "__main__":
    app.run()
