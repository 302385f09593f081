"""Writes transformers/: a small GPT-2 as transformers saves it, and in expected.txt what transformers computes with it.

Usage: python make_transformers.py [--check FILE]   (with the packages of tests/golden/requirements.txt)
expected.txt has tokens, and the logits and mean loss of each predicting the next, in float64. FILE is a
model.safetensors that gpt2_train exported: transformers has to load it, by the config.json beside it, and to compute
the same to 1e-4.
"""

import argparse
import sys
from pathlib import Path

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = Path(__file__).parent / "transformers"
SIZES = dict(n_layer=2, n_head=2, n_embd=16, n_positions=16, vocab_size=61)
BATCH, SEQ = 2, 13
TOLERANCE = 1e-4


def make():
    """Away from the symmetries of an initial state: no gain is 1, no bias is 0."""
    torch.manual_seed(7)
    model = GPT2LMHeadModel(GPT2Config(**SIZES, bos_token_id=None, eos_token_id=None))
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape))
    return model


def computed(model, text):
    """Logits of all but the last token of each row, and the mean loss."""
    with torch.no_grad():
        out = model.double().eval()(text[:, :-1])
    targets = text[:, 1:].reshape(-1)
    return out.logits, torch.nn.functional.cross_entropy(out.logits.reshape(len(targets), -1), targets)


def write():
    model = make()
    model.save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink()
    text = torch.randint(SIZES["vocab_size"], (BATCH, SEQ + 1))
    logits, loss = computed(model, text)
    with open(FOLDER / "expected.txt", "w") as file:
        print(f"# transformers {transformers.__version__}, torch {torch.__version__}, float64", file=file)
        for name, values, form in [("tokens", text, "d"), ("loss", loss, ".9g"), ("logits", logits, ".7g")]:
            print(name, *(format(x, form) for x in values.flatten().tolist()), file=file)


def expected():
    lines = (line.split() for line in (FOLDER / "expected.txt").read_text().splitlines())
    found = {name: torch.tensor([float(x) for x in values], dtype=torch.float64) for name, *values in lines if name != "#"}
    return found["tokens"].long().reshape(BATCH, SEQ + 1), found["logits"], found["loss"]


def check(file):
    model, report = GPT2LMHeadModel.from_pretrained(file.parent, output_loading_info=True)
    text, logits, loss = expected()
    got_logits, got_loss = computed(model, text)
    of_logits, of_loss = (got_logits.flatten() - logits).abs().max().item(), (got_loss - loss).abs().item()
    print(f"logits differ by up to {of_logits:.2g}, the loss by {of_loss:.2g}; loading said {report}")
    return max(of_logits, of_loss) <= TOLERANCE and not any(report.values())


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", type=Path, metavar="FILE")
    file = options.parse_args().check
    if file is None:
        write()
    elif not check(file):
        sys.exit("these are not the same")


if __name__ == "__main__":
    main()
