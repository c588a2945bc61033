"""Job J in PyTorch, three ways: as a researcher writes it, by hand and batched, and compiled.

A round: the full local loss of every agent at the weights it receives (its decision), five local
SGD steps on batches of 64, and the mean of the agents' weights. Each peer's `round()` returns the
losses, the new weights as one flat vector, and the CPU milliseconds of the three parts.
"""

import copy
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

AGENTS, SAMPLES, FEATURES, HIDDEN, CLASSES = 10, 5000, 3072, 128, 10
STEPS, BATCH, ETA = 5, 64, 0.1


class Job:
    """What the round starts from, as `job_j` wrote it."""

    def __init__(self, folder):
        def read(name, kind):
            return np.fromfile(os.path.join(folder, name), kind)

        rows = torch.from_numpy(read("rows.u8", "u1")).view(AGENTS, SAMPLES, FEATURES)
        scale, shift = (torch.from_numpy(read(f"{n}.f32", "<f4")) for n in ("scale", "shift"))
        self.x = torch.empty(AGENTS, SAMPLES, FEATURES)
        for agent in range(AGENTS):
            self.x[agent] = rows[agent] * scale + shift
        self.y = torch.from_numpy(read("labels.u16", "<u2").astype("i8")).view(AGENTS, SAMPLES)
        batches = read("batches.u32", "<u4").astype("i8")
        self.batches = torch.from_numpy(batches).view(AGENTS, STEPS, BATCH)
        flat = torch.from_numpy(read("start.f32", "<f4"))
        sizes = [HIDDEN * FEATURES, HIDDEN, CLASSES * HIDDEN, CLASSES]
        w1, b1, w2, b2 = flat.split(sizes)
        self.start = {
            "0.weight": w1.view(HIDDEN, FEATURES), "0.bias": b1,
            "2.weight": w2.view(CLASSES, HIDDEN), "2.bias": b2,
        }


class Laps:
    """The CPU milliseconds since the last lap: waiting for a busy core costs nobody anything."""

    def __init__(self):
        self.times, self.last = [], time.process_time()

    def lap(self):
        now = time.process_time()
        self.times.append((now - self.last) * 1e3)
        self.last = now


class Researcher:
    """A module for every agent, autograd, `torch.optim.SGD`."""

    name = "PyTorch, module per agent"

    def __init__(self, job):
        self.job = job
        self.model = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN), nn.Softplus(), nn.Linear(HIDDEN, CLASSES)
        )
        self.agents = [copy.deepcopy(self.model) for _ in range(AGENTS)]

    def round(self):
        job = self.job
        self.model.load_state_dict(job.start)
        laps = Laps()
        losses = []
        with torch.no_grad():
            for agent, x, y in zip(self.agents, job.x, job.y):
                agent.load_state_dict(self.model.state_dict())
                losses.append(F.cross_entropy(agent(x), y).item())
        laps.lap()
        for agent, x, y, batches in zip(self.agents, job.x, job.y, job.batches):
            optimizer = torch.optim.SGD(agent.parameters(), lr=ETA)
            for batch in batches:
                optimizer.zero_grad()
                F.cross_entropy(agent(x[batch]), y[batch]).backward()
                optimizer.step()
        laps.lap()
        states = [agent.state_dict() for agent in self.agents]
        mean = {key: torch.stack([s[key] for s in states]).mean(0) for key in states[0]}
        laps.lap()
        return losses, torch.cat([value.flatten() for value in mean.values()]), laps.times


@torch.no_grad()
def loss_of(x, y, w1, b1, w2, b2):
    return F.cross_entropy(torch.addmm(b2, F.softplus(torch.addmm(b1, x, w1)), w2), y)


@torch.no_grad()
def local_step(x, y, w1, b1, w2, b2):
    """One SGD step of all agents, gradients by hand, in place."""
    z = torch.baddbmm(b1, x, w1)
    h = F.softplus(z)
    error = torch.baddbmm(b2, h, w2).softmax(-1)
    error = (error - F.one_hot(y, CLASSES)) / BATCH
    below = (error @ w2.transpose(1, 2)) * torch.sigmoid(z)
    w2.baddbmm_(h.transpose(1, 2), error, alpha=-ETA)
    b2.sub_(error.sum(1, True), alpha=ETA)
    w1.baddbmm_(x.transpose(1, 2), below, alpha=-ETA)
    b1.sub_(below.sum(1, True), alpha=ETA)


class ByHand:
    """Gradients by hand, all agents in one batched product, weights stored as they are used."""

    name = "PyTorch, by hand, batched"
    loss, step = staticmethod(loss_of), staticmethod(local_step)

    def __init__(self, job):
        self.job = job

    @torch.no_grad()
    def round(self):
        job = self.job
        w1, b1, w2, b2 = job.start.values()
        w1, w2 = w1.t().contiguous(), w2.t().contiguous()
        laps = Laps()
        losses = [self.loss(x, y, w1, b1, w2, b2).item() for x, y in zip(job.x, job.y)]
        laps.lap()
        weights = [w.expand(AGENTS, *w.shape).contiguous() for w in (w1, b1[None], w2, b2[None])]
        agents = torch.arange(AGENTS)[:, None]
        for step in range(STEPS):
            batch = job.batches[:, step]
            self.step(job.x[agents, batch], job.y[agents, batch], *weights)
        laps.lap()
        w1, b1, w2, b2 = (w.mean(0) for w in weights)
        laps.lap()
        return losses, torch.cat([w1.t().flatten(), b1[0], w2.t().flatten(), b2[0]]), laps.times


class Compiled(ByHand):
    """Gradients by hand, all agents in one batched product, through `torch.compile`."""

    name = "PyTorch, by hand, compiled"

    def __init__(self, job):
        super().__init__(job)
        self.loss, self.step = torch.compile(loss_of), torch.compile(local_step)


def peers(job):
    """Every peer that works on this machine, tried once."""
    torch.set_num_threads(1)
    found = []
    for kind in (Researcher, ByHand, Compiled):
        try:
            peer = kind(job)
            peer.round()
            found.append(peer)
        except Exception as error:  # torch.compile needs a C++ compiler
            if kind is not Compiled:
                raise
            print(f"without torch.compile, which fails here: {str(error).splitlines()[0]}")
    return found
