"""Writes bitsandbytes.safetensors: the states of AdamW8bit after three steps on the CPU, what they stand for, and a fourth.

Usage: python make_bitsandbytes.py [FILE]   (with the packages of requirements.txt)
Each parameter's states have bitsandbytes' own names behind the parameter's: state1, state2, qmap1, qmap2, absmax1,
absmax2, step. moment1 and moment2 are these decoded by bitsandbytes itself; before, gradient and after are those of its
fourth step. With FILE, a file that memfit exported from the same states (export_bitsandbytes, a target of the tests, makes
one): another AdamW8bit takes them by load_state_dict, and its fourth step must be that of the first, bit for bit.
"""

import os
import sys
from pathlib import Path

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"  # see make_dynamic8.py

import bitsandbytes
import torch
from bitsandbytes.functional import QuantState, dequantize_blockwise
from safetensors.torch import load_file, save_file

SHAPES = {"w": (26, 27), "b": (10,)}
OPTIONS = dict(lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1, min_8bit_size=256)


def make():
    torch.manual_seed(1)
    parameters = {name: torch.nn.Parameter(torch.randn(shape)) for name, shape in SHAPES.items()}
    return parameters, bitsandbytes.optim.AdamW8bit(parameters.values(), **OPTIONS)


def step(parameters, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for p in parameters.values():
        p.grad = torch.randn(p.shape, generator=generator) * 10.0 ** torch.randint(-4, 1, p.shape, generator=generator)
    optimizer.step()


def states(parameters, optimizer):
    for name, p in parameters.items():
        for key, value in optimizer.state[p].items():
            yield f"{name}.{key}", torch.as_tensor(value).clone()


def decoded(state, number):
    codes = state[f"state{number}"]
    if codes.dtype != torch.uint8:
        return codes.clone()
    how = QuantState(absmax=state[f"absmax{number}"], code=state[f"qmap{number}"], blocksize=256, dtype=torch.float32)
    return dequantize_blockwise(codes, quant_state=how)


def check(exported, parameters, optimizer):
    """Whether an optimizer with the exported states goes on as the one they came from."""
    others, other = make()
    step(others, other, 9)  # makes states to be replaced
    for name, p in others.items():
        p.data.copy_(parameters[name].data)
    saved = other.state_dict()
    for number, name in enumerate(SHAPES):
        own = {key.removeprefix(f"{name}."): value for key, value in exported.items() if key.startswith(f"{name}.")}
        shaped = {key: own[key].view(SHAPES[name]) for key in ("state1", "state2")}
        saved["state"][number] = own | shaped | {"step": int(own["step"])}
    other.load_state_dict(saved)
    assert all(same(theirs, exported[name]) for name, theirs in states(others, other)), "other states"
    step(parameters, optimizer, 4)
    step(others, other, 4)
    assert all(torch.equal(parameters[name], others[name]) for name in SHAPES), "another step"
    theirs = dict(states(parameters, optimizer))
    assert all(same(value, theirs[name]) for name, value in states(others, other)), "other states after the step"
    assert theirs.keys() == exported.keys(), "other names"
    print("bitsandbytes goes on from", sys.argv[1])


def same(a, b):
    return a.dtype == b.dtype and torch.equal(a.flatten(), b.flatten())


def main():
    parameters, optimizer = make()
    for seed in range(1, 4):
        step(parameters, optimizer, seed)
    if len(sys.argv) > 1:
        check(load_file(sys.argv[1]), parameters, optimizer)
        return
    tensors = dict(states(parameters, optimizer))
    for name, p in parameters.items():
        for number in (1, 2):
            tensors[f"{name}.moment{number}"] = decoded(optimizer.state[p], number)
    tensors |= {f"{name}.before": p.data.clone() for name, p in parameters.items()}
    step(parameters, optimizer, 4)
    for name, p in parameters.items():
        tensors |= {f"{name}.gradient": p.grad, f"{name}.after": p.data}
    made = f"bitsandbytes {bitsandbytes.__version__}, torch {torch.__version__.split('+')[0]}, make_bitsandbytes.py"
    save_file(tensors, Path(__file__).with_name("bitsandbytes.safetensors"), metadata={"made_by": made})


if __name__ == "__main__":
    main()
