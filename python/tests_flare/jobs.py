"""Jobs in FLARE's simulator: processes of their own, on loopback, for a bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bowls import CENTRES
from fedstay.flare import FedStay
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

HERE = Path(__file__).parent


def export(
    folder: Path,
    controllers: list[FedStay],
    script: str = "client.py",
    components: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a job as one would submit it, and returns its folder."""
    job = FedJob(name="bowls", min_clients=1)
    for number, controller in enumerate(controllers):
        job.to_server(controller, id=f"fedstay{number}")
    for name, component in (components or {}).items():
        job.to_server(component, id=name)
    # Sites ask for the next task after 2 seconds unless told otherwise.
    job.to_server({"server": {"task_request_interval": 0.1}})
    # FLARE takes the script at an absolute path for one that every site has there already.
    with contextlib.chdir(HERE):
        job.to_clients(ScriptRunner(script, framework=FrameworkType.NUMPY))
        job.to_clients("bowls.py")
        job.export_job(str(folder))
    return folder / "bowls"


def simulate(
    job: Path,
    workspace: Path,
    *,
    seconds: float = 400.0,
    kill_when: Callable[[], bool] | None = None,
) -> str:
    """Runs a job in the simulator, kills it with all its clients when it should be, and returns what
    it logged."""
    command = [sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", str(job)]
    command += ["-w", str(workspace), "-c", ",".join(CENTRES), "-t", str(len(CENTRES))]
    log = workspace.with_suffix(".log")
    with log.open("w") as lines:
        process = subprocess.Popen(
            command, stdout=lines, stderr=lines, start_new_session=True, env=dict(os.environ)
        )
        try:
            until = time.monotonic() + seconds
            while process.poll() is None:
                if kill_when is not None and kill_when():
                    # The server is a child of the simulator's first process.
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(10)
                    # The clients notice that their parent is gone.
                    time.sleep(3)
                    return log.read_text()
                if time.monotonic() > until:
                    raise TimeoutError(
                        f"the job is not over after {seconds} s: {log.read_text()[-4000:]}"
                    )
                time.sleep(0.2)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    text = log.read_text()
    assert process.returncode == 0, text[-4000:]
    return text
