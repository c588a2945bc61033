"""Makes the job, and runs it in FLARE's simulator, or exports it for a real federation.

python job.py --rule fedavg --out /tmp/hello-fedavg
python job.py --rule retain --out /tmp/hello-retain
python job.py --rule retain --out /var/runs/hello --export /tmp/jobs
"""

import argparse
import os
import sys
from pathlib import Path

import fedstay
from fedstay.flare import FedStay
from hospital import HOSPITALS, START
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--rule", default="retain")
    ask.add_argument("--rounds", type=int, default=40)
    ask.add_argument("--out", required=True, help="the run's folder: an absolute path")
    ask.add_argument("--workspace", default="/tmp/fedstay-hello", help="the simulator's")
    ask.add_argument("--torch", action="store_true", help="sites train by Adam, in PyTorch")
    ask.add_argument("--policy", help="what the server does around the rule")
    ask.add_argument("--export", help="write the job into this folder and do not run it")
    given = ask.parse_args()

    job = FedJob(name="fedstay-hello", min_clients=len(HOSPITALS))
    job.to_server(
        FedStay(
            given.rule,
            step_size=1.0,
            rounds=given.rounds,
            policy=given.policy,
            weights=START,
            dtype="float32" if given.torch else "float64",
            agents=HOSPITALS,
            out=given.out,
            evaluate_leavers=True,  # They are all ours here.
            on="hospitals",
        )
    )
    export = Path(given.export).resolve() if given.export else None
    # FLARE copies a script whose path is relative; one at an absolute path is every site's own.
    os.chdir(Path(__file__).parent)
    script = "client_torch.py" if given.torch else "client.py"
    framework = FrameworkType.PYTORCH if given.torch else FrameworkType.NUMPY
    job.to_clients(ScriptRunner(script, framework=framework))
    job.to_clients("hospital.py")
    if export:
        job.export_job(str(export))
        return
    if job.simulator_run(given.workspace, n_clients=len(HOSPITALS)) != 0:
        sys.exit(f"the job failed; see the logs under {given.workspace}")
    result = fedstay.read(given.out)
    print(result)
    worst = min(agent["accuracy"] for agent in result.summary["agents"])
    print(f"worst hospital: {100 * worst:.1f}% accuracy")


if __name__ == "__main__":
    main()
