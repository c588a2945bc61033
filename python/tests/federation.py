"""A real SuperLink and real SuperNodes on 127.0.0.1, with TLS and node authentication."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

APP = Path(__file__).parent / "loopback"
BIN = Path(sys.executable).parent


def free_ports(count: int) -> list[int]:
    """Finds ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_until(done, seconds: float, what: str, every: float = 0.2):
    """Waits for something, but not forever."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = done()
        if value:
            return value
        time.sleep(every)
    raise AssertionError(f"{what}: not within {seconds} s")


def started_in(home: Path, name: str = "") -> list[int]:
    """Processes whose FLWR_HOME this is, by their pid."""
    mark = f"FLWR_HOME={home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            said = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            if mark in said.split(b"\0") and name.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Federation:
    """Starts everything, and ends only what it started."""

    def __init__(
        self,
        folder: Path,
        secure: bool = True,
        simulation: bool = False,
        app: Path = APP,
        installs: bool = False,
    ) -> None:
        """With `installs`, the SuperLink installs what apps depend on, as it does by default. SuperNodes
        do not."""
        self.folder, self.secure, self.app = folder, secure, app
        self.home = folder / "flwr"
        self.home.mkdir(parents=True)
        self.environment = {
            **os.environ,
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        self.processes: list[subprocess.Popen] = []
        self.port, *self.node_ports = free_ports(8)
        self.address = f"127.0.0.1:{self.port}"
        options = ["--host", "127.0.0.1", "--port", str(self.port)]
        if not installs:
            options += ["--disable-runtime-dependency-installation"]
        if secure:
            self._certificates()
            options += ["--ssl-certfile", "server.pem", "--ssl-keyfile", "server.key",
                        "--ssl-ca-certfile", "ca.crt", "--enable-supernode-auth"]  # fmt: skip
            connection = f'root-certificates = "{folder}/ca.crt"'
        else:
            options += ["--insecure"]
            connection = "insecure = true"
        if simulation:
            options += ["--simulation"]
        (self.home / "config.toml").write_text(
            f'[superlink.dep]\naddress = "{self.address}"\n{connection}\n'
        )
        self.superlink = self.spawn("superlink", ["flower-superlink", *options])
        self._wait_for_port()

    def _certificates(self) -> None:
        """A certificate authority of our own, and a certificate for localhost."""

        def openssl(*arguments: str) -> None:
            subprocess.run(
                ["openssl", *arguments], cwd=self.folder, check=True, capture_output=True
            )

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "ca.key",
                "-out", "ca.crt", "-subj", "/CN=fedstay test")  # fmt: skip
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr",
                "-subj", "/CN=localhost")  # fmt: skip
        (self.folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")  # fmt: skip

    def _wait_for_port(self) -> None:
        def open_() -> bool:
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(open_, 60, f"the SuperLink\n{self.log('superlink')}")

    def spawn(self, name: str, command: list[str]) -> subprocess.Popen:
        """A process of ours; its output goes to a file."""
        with open(self.folder / f"{name}.log", "ab") as out:
            process = subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                cwd=self.folder, env=self.environment,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def flwr(self, *arguments: str, seconds: float = 120) -> str:
        done = subprocess.run(
            [str(BIN / "flwr"), *arguments], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=seconds,
        )  # fmt: skip
        assert done.returncode == 0, f"flwr {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def key(self, name: str, register: bool = True) -> Path:
        """A node's key, made and registered."""
        path = self.folder / f"key-{name}"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", str(path)], check=True
        )
        if register:
            self.flwr("supernode", "register", f"{path}.pub", "dep")
        return path

    def supernode(
        self, name: str, key: Path | None, number: int, config: str | None = None
    ) -> subprocess.Popen:
        """A SuperNode whose agent has this name, or with another config."""
        config = f'agent="{name}"' if config is None else config
        options = ["--superlink", self.address, "--host", "127.0.0.1",
                   "--port", str(self.node_ports[number]), "--node-config", config]  # fmt: skip
        if self.secure:
            options += ["--root-certificates", "ca.crt"]
            if key is not None:
                options += ["--auth-supernode-private-key", str(key)]
        else:
            options += ["--insecure"]
        return self.spawn(f"supernode-{name}-{number}", ["flower-supernode", *options])

    def start_run(self, *options: str, **config) -> str:
        """Submits the app; returns the run's id."""
        shown = " ".join(
            f"{k}={v}" if isinstance(v, (int, float)) else f"{k}='{v}'" for k, v in config.items()
        )
        out = self.flwr(
            "run", str(self.app), "dep", "--format", "json", "--run-config", shown, *options
        )
        return str(json.loads(out[out.index("{") :])["run-id"])

    def status(self, run: str) -> str:
        out = self.flwr("list", "dep", "--run-id", run, "--format", "json")
        return json.loads(out[out.index("{") :])["runs"][0]["status"]

    def wait_for_task(self, run: str) -> None:
        """Waits until the server app of a run has taken up its task."""
        begun = rf"Started task \d+ of run {run}\b"
        wait_until(
            lambda: bool(re.search(begun, self.log("superlink"))), 180, "the server app", 0.05
        )

    def finish(self, run: str, out: Path, seconds: float) -> str:
        """Waits for the end of a run, and returns how it ended.

        The last file the app writes shows when: asking Flower costs a new process each time.
        """

        def over() -> bool:
            ended = re.search(rf"Finished task \d+ of run {run}\b", self.log("superlink"))
            return ended is not None or (out / "weights.npy").exists()

        wait_until(over, seconds, f"run {run}\n{self.log('superlink')[-3000:]}")

        def ended() -> str:
            status = self.status(run)
            return status if status.startswith("finished") else ""

        return wait_until(ended, 300, f"the end of run {run}", every=0.5)

    def ours(self, name: str) -> list[int]:
        """Processes that this federation started, itself or through its SuperLink, by their pid."""
        return started_in(self.home, name)

    def kill_server_app(self) -> bool:
        """Kills the process of the server app that runs now; returns whether there was one."""
        there = self.ours("flwr-serverapp")
        for pid in there:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(there)

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
        # What the SuperLink started lives in a session of its own.
        for pid in self.ours(""):
            os.kill(pid, signal.SIGKILL)
