"""A real Flower run for the browser to watch: a SuperLink and three SuperNodes, four rounds into OUT.

python scripts/browser/flower.py OUT SCRATCH
"""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "tests"))

from federation import Federation  # noqa: E402 (it lives with the tests of the strategy)

# When asked to end, it ends what it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
out, scratch = map(Path, sys.argv[1:])
federation = Federation(scratch, secure=False)
try:
    for number, name in enumerate("abc"):
        federation.supernode(name, None, number)
    run = federation.start_run(out=out, rounds=4)
    status = federation.finish(run, out, 300)
    if status != "finished:completed":
        sys.exit(f"{status}\n{federation.log('superlink')}")
finally:
    federation.close()
