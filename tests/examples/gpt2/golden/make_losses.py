"""Writes losses.txt: the first 20 losses of a tiny GPT-2 trained by PyTorch in float64.

Usage: python make_losses.py > losses.txt   (with the packages of tests/golden/requirements.txt)
Parameters and tokens come from an integer generator that any language reproduces exactly; every parameter is a
multiple of 1/1024 and so representable in fp32.
"""

import torch
from torch.nn import functional

STEPS = 20
LAYERS, HEADS, CHANNELS, CONTEXT, VOCABULARY = 2, 2, 32, 16, 256
BATCH, SEQ = 3, 12
OPTIONS = dict(lr=2e-3, betas=(0.9, 0.95), eps=1e-8)
DECAY_OF_MATRICES = 0.1

state = 1


def draw():
    """The upper byte of a 64-bit linear congruential generator."""
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return state >> 56


def tensor(*shape, around=0.0):
    count = torch.Size(shape).numel()
    values = [around + (draw() - 128) / 1024 for _ in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()


def norm():
    return [tensor(CHANNELS, around=1.0), tensor(CHANNELS)]


def linear(inputs, outputs):
    return [tensor(inputs, outputs), tensor(outputs)]


def block():
    return [
        norm(),
        linear(CHANNELS, 3 * CHANNELS),
        linear(CHANNELS, CHANNELS),
        norm(),
        linear(CHANNELS, 4 * CHANNELS),
        linear(4 * CHANNELS, CHANNELS),
    ]


def normed(x, weights):
    return functional.layer_norm(x, (CHANNELS,), *weights)


def applied(x, weights):
    return x @ weights[0] + weights[1]


def attended(x, weights):
    parts = applied(x, weights).reshape(BATCH, SEQ, 3, HEADS, CHANNELS // HEADS).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
    return mixed.transpose(1, 2).reshape(BATCH, SEQ, CHANNELS)


def logits(tokens):
    x = of_token[tokens] + of_position[:SEQ]
    for norm_1, query_key_value, projection, norm_2, up, down in blocks:
        x = x + applied(attended(normed(x, norm_1), query_key_value), projection)
        x = x + applied(functional.gelu(applied(normed(x, norm_2), up), approximate="tanh"), down)
    return normed(x, last_norm) @ of_token.T


of_token = tensor(VOCABULARY, CHANNELS)
of_position = tensor(CONTEXT, CHANNELS)
blocks = [block() for _ in range(LAYERS)]
last_norm = norm()
text = torch.tensor([draw() for _ in range(BATCH * (SEQ + 1))]).reshape(BATCH, SEQ + 1)

parameters = [of_token, of_position, *(t for b in blocks for pair in b for t in pair), *last_norm]
matrices = [p for p in parameters if p.dim() == 2]
vectors = [p for p in parameters if p.dim() == 1]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": DECAY_OF_MATRICES}, {"params": vectors, "weight_decay": 0.0}], **OPTIONS
)

print(f"# torch {torch.__version__}, float64")
for _ in range(STEPS):
    optimizer.zero_grad()
    loss = functional.cross_entropy(logits(text[:, :-1]).reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
    print(repr(loss.item()))
    loss.backward()
    optimizer.step()
