"""Writes scaler.txt: 300 steps of PyTorch's GradScaler with scripted overflows and two optimizers that share it.

Usage: python make_scaler.py > scaler.txt   (with the packages of requirements.txt)
A step's line: which of the two gradients is not finite, then which optimizers stepped, the scale and the growth tracker
after update.
"""

import torch

STEPS = 300
CASES = [
    dict(growth_interval=1),
    dict(growth_interval=3),
    dict(growth_interval=2000, tracker=1900),
    dict(growth_interval=2, growth_factor=1.7, backoff_factor=0.6, init_scale=1000.0),
]


def overflows(seed):
    """Whether each of the two gradients overflows, step by step: now and then one of them, now and then both."""
    state = seed
    for _ in range(STEPS):
        state = (state * 1664525 + 1013904223) % 2**32
        draw = state >> 24
        yield draw < 64, 32 <= draw < 96


print(f"# made by make_scaler.py: torch {torch.__version__.split('+')[0]}, GradScaler on the CPU")
print("# case options tracker, then per step: overflows, steps taken, scale, growth tracker")
for number, case in enumerate(CASES):
    tracker = case.pop("tracker", 0)
    options = dict(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5) | case
    scaler = torch.amp.GradScaler("cpu", **options)
    scaler.load_state_dict(scaler.state_dict() | {"_growth_tracker": tracker})
    parameters = [torch.nn.Parameter(torch.zeros(3)) for _ in range(2)]
    optimizers = [torch.optim.SGD([p], lr=1.0) for p in parameters]
    print("case", options["init_scale"], options["growth_factor"], options["backoff_factor"],
          options["growth_interval"], tracker)
    for flags in overflows(number + 1):
        loss = scaler.scale(torch.ones(()))
        stepped = []
        for parameter, optimizer, overflow in zip(parameters, optimizers, flags):
            before = parameter.detach().clone()
            parameter.grad = loss.detach() * torch.ones(3)
            if overflow:
                parameter.grad[1] = float("inf")
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            stepped.append(not torch.equal(parameter.detach(), before))
        scaler.update()
        saved = scaler.state_dict()
        print("".join(str(int(f)) for f in flags), "".join(str(int(s)) for s in stepped), f"{saved['scale']:.9g}",
              saved["_growth_tracker"])
