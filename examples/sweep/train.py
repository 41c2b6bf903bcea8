"""Trains a small network to tell two half-moons apart: one of the 60 trainings of the sweep.

It is a real training, with checkpoints and progress. So that seconds show what takes weeks elsewhere, some tasks have
bad luck once (``BAD_LUCK``), and the widest network needs more memory than the sweep asks for.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import holdfast

if TYPE_CHECKING:
    from pathlib import Path

EPOCHS = 20
POINTS = 256
LAST = 2
"""The number of the last layer, from 0."""
BAD_LUCK = {7: "reset", 19: "reset", 24: "crash", 46: "crash", 50: "hang"}
"""What happens to a task once, by its index, half-way through."""
EPOCH_S = 0.02
"""Each epoch waits for so long, so that there is time to look."""


def moons(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make the points of two half-moons, and say for each which one it is of."""
    dice = np.random.default_rng(seed)
    angles = dice.random(POINTS) * np.pi
    sides = np.repeat([0.0, 1.0], POINTS // 2)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points[sides == 1] = [1.0, 0.5] - points[sides == 1]
    return points + dice.normal(scale=0.1, size=points.shape), sides


def begin(seed: int, width: int) -> dict[str, np.ndarray]:
    """Make a network of two hidden layers."""
    dice = np.random.default_rng(seed)
    sizes = [2, width, width, 1]
    weights = {
        f"w{layer}": dice.normal(scale=1 / np.sqrt(rows), size=(rows, columns))
        for layer, (rows, columns) in enumerate(itertools.pairwise(sizes))
    }
    return weights | {f"b{layer}": np.zeros(columns) for layer, columns in enumerate(sizes[1:])}


class Adam:
    """The optimizer: two running means for each weight, which is what makes wide networks large."""

    def __init__(self, net: dict[str, np.ndarray], rate: float) -> None:
        """Begin with means of nothing."""
        self.net, self.rate, self.steps = net, rate, 0
        self._mean = {name: np.zeros_like(weights) for name, weights in net.items()}
        self._square = {name: np.zeros_like(weights) for name, weights in net.items()}

    def apply(self, name: str, slope: np.ndarray) -> None:
        """Move some weights against their slope."""
        self._mean[name] += 0.1 * (slope - self._mean[name])
        self._square[name] += 0.001 * (slope**2 - self._square[name])
        mean, square = self._mean[name] / (1 - 0.9**self.steps), self._square[name] / (1 - 0.999**self.steps)
        self.net[name] -= self.rate * mean / (np.sqrt(square) + 1e-8)


def step(adam: Adam, points: np.ndarray, sides: np.ndarray) -> float:
    """Take one step; return the share of points told apart rightly before it."""
    adam.steps += 1
    layers = [points]
    for layer in range(LAST + 1):
        total = layers[-1] @ adam.net[f"w{layer}"] + adam.net[f"b{layer}"]
        layers.append(np.tanh(total) if layer < LAST else 1 / (1 + np.exp(-total)))
    error = layers[-1] - sides[:, None]
    for layer in range(LAST, -1, -1):
        back = error @ adam.net[f"w{layer}"].T
        adam.apply(f"b{layer}", error.mean(axis=0))
        adam.apply(f"w{layer}", layers[layer].T @ error / len(points))
        error = back * (1 - layers[layer] ** 2) if layer else back
    return float(np.mean(np.round(layers[-1][:, 0]) == sides))


def suffer(luck: str) -> None:
    """Fail as machines, networks and libraries do."""
    if luck == "reset":
        raise ConnectionResetError(104, "Connection reset by peer", "s3://moons/shard-3")
    if luck == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    print("waiting for the data loader", flush=True)
    time.sleep(1000)


def load(path: Path, seed: int, width: int) -> tuple[dict[str, np.ndarray], int]:
    """Return the network of the last checkpoint and its epoch, or a new one."""
    if not path.exists():
        return begin(seed, width), 0
    with np.load(path) as saved:
        net = {name: saved[name] for name in saved.files}
    return net, int(net.pop("epoch"))


def save(path: Path, net: dict[str, Any]) -> None:
    """Replace the checkpoint in one step, so that a crash never leaves half of one."""
    fresh = path.with_suffix(".new.npz")
    np.savez(fresh, **net)
    fresh.replace(path)


def main() -> None:
    """Train from the last checkpoint on, saving one after each epoch."""
    run = holdfast.current()
    rate, width, seed = (float(os.environ[f"HOLDFAST_PARAM_{name}"]) for name in ("LR", "WIDTH", "SEED"))
    checkpoint = run.checkpoint_dir / "net.npz"
    net, done = load(checkpoint, int(seed), int(width))
    gpu = os.environ["CUDA_VISIBLE_DEVICES"]
    print(f"attempt {run.attempt} on {gpu}: lr {rate:g}, width {width:g}, seed {seed:g}, from epoch {done}", flush=True)
    points, sides = moons(int(seed))
    adam, right = Adam(net, rate), 0.0
    for epoch in range(done + 1, EPOCHS + 1):
        right = step(adam, points, sides)
        save(checkpoint, {**net, "epoch": epoch})
        run.progress(epoch, EPOCHS)
        had_it = run.checkpoint_dir / "had-bad-luck"
        if epoch == EPOCHS // 2 and run.index in BAD_LUCK and not had_it.exists():
            had_it.touch()
            suffer(BAD_LUCK[run.index])
        time.sleep(EPOCH_S)
    print(f"{right:.0%} right after {EPOCHS} epochs", flush=True)


if __name__ == "__main__":
    main()
