#!/usr/bin/env python3
"""How well other libraries' small optimizer states keep AdamW on its exact path, on the gradients of a real run.

bench/fidelity/peers.py GRADIENTS [STEPS [ELEMENTS]], under a Python with the packages of bench/peers/requirements.txt.
GRADIENTS is a file of gpt2_train --capture-gradients. Each step starts from a parameter of zero, without decay, so that
what a library leaves there is its update; the exact run is AdamW in float64. Prints a table for bench/README.md, with the
same columns as bench_fidelity; bytes are those of the first tensor, as torchao keeps small ones in fp32.
"""

import os
import sys

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # torchao compiles its step otherwise, for minutes

# pylint: disable=wrong-import-position
import bitsandbytes
import numpy
import torch
import torchao.optim

LR, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8


class Recording:
    """The first elements of each tensor, step after step."""

    def __init__(self, path, most):
        self.file = open(path, "rb")  # pylint: disable=consider-using-with
        if self.file.readline() != b"memfit-gradients 1\n":
            sys.exit(f"{path} is no file of gradients")
        self.names, self.stored = [], []
        while (line := self.file.readline().split()):
            self.names.append(line[0].decode())
            self.stored.append(int(line[1]))
        self.counts = [min(count, most) for count in self.stored]

    def step(self):
        for stored, count in zip(self.stored, self.counts):
            yield torch.from_numpy(numpy.fromfile(self.file, numpy.float32, stored)[:count].copy())


class Exact:
    """AdamW in float64."""

    def __init__(self, count):
        self.first, self.second = torch.zeros(count, dtype=torch.float64), torch.zeros(count, dtype=torch.float64)
        self.steps = 0

    def store(self):
        pass

    def step(self, gradient):
        self.steps += 1
        gradient = gradient.double()
        self.first += (1 - BETA1) * (gradient - self.first)
        self.second += (1 - BETA2) * (gradient * gradient - self.second)
        first = self.first / (1 - BETA1**self.steps)
        update = LR * first / ((self.second / (1 - BETA2**self.steps)).sqrt() + EPS)
        self.store()
        return update


class FlashOptim(Exact):
    """The format of arXiv 2602.23349, from the paper: softsign and square root, groups of 32, fp16 scales."""

    @staticmethod
    def scaled(values):
        groups = torch.nn.functional.pad(values, (0, -len(values) % 32)).view(-1, 32)
        scales = groups.abs().amax(1, keepdim=True).half().double()
        return groups / torch.where(scales > 0, scales, 1), scales

    def store(self):
        count = len(self.first)
        x, scales = self.scaled(self.first)
        code = (2 * x / (1 + x.abs()) * 127).round().clamp(-127, 127) / 127
        self.first = (code / (2 - code.abs()) * scales).view(-1)[:count]
        # Scales of the roots, as second moments would leave the range of fp16.
        x, scales = self.scaled(self.second.sqrt())
        self.second = (((x * 255).round().clamp(0, 255) / 255) * scales).view(-1)[:count] ** 2

    @staticmethod
    def bytes():
        return 2 * (1 + 2 / 32)


class Library:
    """An optimizer of a library, of which only the update is read."""

    def __init__(self, count, make):
        self.parameter = torch.nn.Parameter(torch.zeros(count))
        self.optimizer = make([self.parameter])

    def step(self, gradient):
        self.parameter.data.zero_()
        self.parameter.grad = gradient
        self.optimizer.step()
        return -self.parameter.data.double()

    def bytes(self):
        """Of codes and scales per parameter; maps are one for all."""
        state = dict(named_parts(self.optimizer.state[self.parameter].items()))
        return sum(t.nbytes for name, t in state.items() if "qmap" not in name) / self.parameter.numel()


def named_parts(tensors):
    """The plain tensors of some elements that these are made of."""
    for name, t in tensors:
        if hasattr(t, "__tensor_flatten__"):
            yield from named_parts((f"{name}.{part}", getattr(t, part)) for part in t.__tensor_flatten__()[0])
        elif isinstance(t, torch.Tensor) and t.ndim > 0:
            yield name, t


SETTINGS = {"lr": LR, "betas": (BETA1, BETA2), "eps": EPS, "weight_decay": 0.0}


def bits8(parameters):
    return bitsandbytes.optim.AdamW8bit(parameters, min_8bit_size=0, **SETTINGS)


PEERS = {
    f"bitsandbytes {bitsandbytes.__version__} AdamW8bit": lambda n: Library(n, bits8),
    f"torchao {torchao.__version__} AdamW8bit": lambda n: Library(n, lambda p: torchao.optim.AdamW8bit(p, **SETTINGS)),
    f"torchao {torchao.__version__} AdamW4bit": lambda n: Library(n, lambda p: torchao.optim.AdamW4bit(p, **SETTINGS)),
    "FlashOptim's format": FlashOptim,
}


class Track:
    """What one optimizer did on one tensor."""

    def __init__(self, optimizer, count):
        self.optimizer = optimizer
        self.path = torch.zeros(count, dtype=torch.float64)
        self.error = self.largest = 0.0

    def step(self, gradient, exact):
        update = self.optimizer.step(gradient)
        self.path += update
        self.error += float(((update - exact) ** 2).sum())
        self.largest = max(self.largest, float(update.abs().max()) / LR)


def replay(recording, steps):
    exact = [Exact(count) for count in recording.counts]
    path = [torch.zeros(count, dtype=torch.float64) for count in recording.counts]
    norm = [0.0] * len(path)
    tracks = {name: [Track(make(count), count) for count in recording.counts] for name, make in PEERS.items()}
    for _ in range(steps):
        for i, gradient in enumerate(recording.step()):
            update = exact[i].step(gradient)
            path[i] += update
            norm[i] += float((update**2).sum())
            for peer in tracks.values():
                peer[i].step(gradient, update)
    return path, norm, tracks


def main():
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    recording = Recording(sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else 16384)
    path, norm, tracks = replay(recording, steps)
    print(f"| AdamW of | bytes | update | path | largest / lr | {' | '.join(recording.names)} |")
    print(f"| --- |{' ---: |' * (4 + len(path))}")
    for name, peer in tracks.items():
        missed = [float(((t.path - p) ** 2).sum()) for t, p in zip(peer, path)]
        length = [float((p**2).sum()) for p in path]
        cells = [f"{peer[0].optimizer.bytes():.3f}", f"{(sum(t.error for t in peer) / sum(norm)) ** 0.5:.2g}"]
        cells.append(f"{(sum(missed) / sum(length)) ** 0.5:.2g}")
        cells.append(f"{max(t.largest for t in peer):.2g}")
        cells += [f"{(m / n) ** 0.5:.2g}, {t.largest:.2g}" for m, n, t in zip(missed, length, peer)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
