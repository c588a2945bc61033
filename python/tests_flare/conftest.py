import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# The tests read the log; FLARE's default writes colours.
os.environ.setdefault("NO_COLOR", "1")
