"""The toy net is a plain module beside these tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
