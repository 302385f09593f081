"""Writes rules.txt: PyTorch's own rules, and timm's where PyTorch has none, in float64 over eight steps, with
hyper-parameters off their defaults.

Usage: python make_rules.py > rules.txt   (with the packages of requirements.txt)
Values are hexadecimal doubles; parameters and gradients are representable in fp32.
"""

import timm
import timm.optim
import torch

STEPS = 8
COUNT = 6
ADAM = dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)
MOMENTS = ["exp_avg", "exp_avg_sq"]
ADAGRAD = dict(lr=0.02, eps=1e-3, weight_decay=0.1, initial_accumulator_value=0.3)
LARS = dict(lr=0.5, momentum=0.8, weight_decay=0.1, trust_coeff=0.01, eps=1e-3)
CASES = [
    ("sgd", torch.optim.SGD, dict(lr=0.05, weight_decay=0.1), []),
    ("momentum", torch.optim.SGD, dict(lr=0.05, momentum=0.8, weight_decay=0.1), ["momentum_buffer"]),
    ("momentum", torch.optim.SGD, dict(lr=0.05, momentum=0.8, dampening=0.3, weight_decay=0.1), ["momentum_buffer"]),
    ("momentum", torch.optim.SGD, dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1), ["momentum_buffer"]),
    ("adam", torch.optim.Adam, ADAM, MOMENTS),
    ("adamw", torch.optim.AdamW, ADAM, MOMENTS),
    ("amsgrad", torch.optim.Adam, ADAM | dict(amsgrad=True), [*MOMENTS, "max_exp_avg_sq"]),
    ("amsgradw", torch.optim.AdamW, ADAM | dict(amsgrad=True), [*MOMENTS, "max_exp_avg_sq"]),
    ("nadam", torch.optim.NAdam, ADAM | dict(momentum_decay=0.3), MOMENTS),
    ("radam", torch.optim.RAdam, ADAM, MOMENTS),
    ("rmsprop", torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1), ["square_avg"]),
    ("adagrad", torch.optim.Adagrad, dict(lr=0.02, lr_decay=0.3, eps=1e-3, weight_decay=0.1), ["sum"]),
    ("adagrad", torch.optim.Adagrad, ADAGRAD, ["sum"]),
    ("lamb", timm.optim.Lamb, ADAM, MOMENTS),
    ("lamb", timm.optim.Lamb, ADAM | dict(eps=100.0, trust_clip=True), MOMENTS),
    ("lars", timm.optim.Lars, LARS, ["momentum_buffer"]),
    ("lars", timm.optim.Lars, LARS | dict(weight_decay=0.0), ["momentum_buffer"]),
]
# Options of the kind that memfit does not have: gradients as they are, ratios for all tensors.
ALWAYS = {timm.optim.Lamb: dict(max_grad_norm=None), timm.optim.Lars: dict(always_adapt=True)}


def row(key, values):
    print(key, *(float(value).hex() for value in values.detach()))


def fields(options):
    for key, value in options.items():
        if key == "betas":
            yield from (f"beta{i + 1}={beta!r}" for i, beta in enumerate(value))
        else:
            yield f"{key}={float(value)!r}"


def representable(*shape):
    return torch.randn(*shape, dtype=torch.float32, generator=generator).double()


torch.set_default_dtype(torch.float64)  # for the scalars among the states
generator = torch.Generator().manual_seed(20240601)
start = representable(COUNT)
gradients = representable(STEPS, COUNT) * torch.tensor([1, 1e-3, 10, 1, 0, 1], dtype=torch.float64)
gradients = gradients.float().double()

print(f"# made by make_rules.py: torch {torch.__version__.split('+')[0]}, timm {timm.__version__}, float64")
print("# case NAME hyper-parameters, then the start p, then per step: gradient g, parameter p, moments s0 to s2")
for name, kind, options, slots in CASES:
    print("case", name, *fields(options))
    parameter = torch.nn.Parameter(start.clone())
    extra = ALWAYS.get(kind, dict(foreach=False))
    optimizer = kind([parameter], **options, **extra)
    row("p", parameter)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
        row("g", gradient)
        row("p", parameter)
        for index, slot in enumerate(slots):
            # memfit keeps sums of squares alone.
            row(f"s{index}", optimizer.state[parameter][slot] - options.get("initial_accumulator_value", 0))
