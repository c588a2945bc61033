"""A job in POC mode: provisioned sites with certificates, a job that is submitted."""

from __future__ import annotations

import socket

import pytest
from bowls import CENTRES
from jobs import export
from poc import Poc
from test_simulator import assert_same, controller, here

#: Where FLARE's POC mode listens.
PORTS = (8002, 8003)


def taken(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(any(map(taken, PORTS)), reason="somebody listens where POC mode does")
def test_a_submitted_job_is_a_simulation_bit_for_bit(tmp_path):
    job = export(tmp_path / "job", [controller(tmp_path / "out", rounds=5, policy="preview")])
    poc = Poc(tmp_path / "flare", list(CENTRES))
    try:
        poc.submit(job)
        poc.wait_for(tmp_path / "out" / "summary.json", 240)
    finally:
        poc.close()
    assert_same(tmp_path / "out", here(rounds=5, policy="preview"))
