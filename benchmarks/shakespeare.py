"""What a second buys: GPT-2 on tiny Shakespeare, by `regard train` and by a plain PyTorch loop.

    REGARD_MIRROR=... python benchmarks/shakespeare.py [--steps 2000] [--seed 1]

The plain loop is nanoGPT's recipe for a CPU (4 layers, dim 128, windows of 64, 12 at a time, AdamW
from 1e-3 down to 1e-4), written by hand. Ours is the preset `shakespeare-gpt2`, with its logs and
checkpoints. The two take turns, on one thread, until the plain loop has made its steps: ours makes
as many as it can in the same time. Both losses are of the whole dev part, in windows of 64.
"""

import argparse
import math
import tempfile
import time
from pathlib import Path

import torch
from gpt2 import ByHand
from torch import Tensor

from regard.config.presets import preset_paths
from regard.data.build import build_corpus
from regard.tasks.language.task import LanguageTask
from regard.tasks.load import load_settings
from regard.training.loop import Step
from regard.training.trainer import Trainer

TURN = 20  # steps of the plain loop between two turns of ours
WARMUP, HIGHEST, LOWEST = 100, 1e-3, 1e-4
SIZES = {"dim": 128, "layers": 4, "heads": 4, "context": 64, "dropout": 0.0}


def rate(step: int, steps: int) -> float:
    if step < WARMUP:
        return HIGHEST * (step + 1) / WARMUP
    share = (step - WARMUP) / max(1, steps - WARMUP)
    return LOWEST + (HIGHEST - LOWEST) * (1 + math.cos(math.pi * share)) / 2


class Plain:
    """nanoGPT's loop, on ids that are already there."""

    def __init__(self, train: Tensor, dev: Tensor, words: int, steps: int, seed: int):
        torch.manual_seed(seed)
        self.train, self.dev, self.steps, self.done = train, dev, steps, 0
        self.model = ByHand(argparse.Namespace(words=words, **SIZES), "none")
        grown = [p for p in self.model.parameters() if p.ndim > 1]
        other = [p for p in self.model.parameters() if p.ndim < 2]
        groups = [{"params": grown, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=HIGHEST, betas=(0.9, 0.99))

    def step(self) -> None:
        at = torch.randint(len(self.train) - 64, (12,))
        ids = torch.stack([self.train[n : n + 65] for n in at.tolist()])
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.done, self.steps)
        self.optimiser.zero_grad(set_to_none=True)
        self.model(ids[:, :-1], ids[:, 1:]).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.done += 1

    @torch.no_grad()
    def loss(self) -> float:
        """Of all of dev, but for the end that fills no window."""
        count = (len(self.dev) - 1) // 64
        given, wanted = (self.dev[n : n + 64 * count].view(count, 64) for n in (0, 1))
        self.model.eval()
        total = sum(
            self.model(a, b).item() * len(a)
            for a, b in zip(given.split(64), wanted.split(64), strict=True)
        )
        return total / count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    settings = load_settings(
        preset_paths()["shakespeare-gpt2"],
        [f"seed={given.seed}", f"train.steps={given.steps}", "train.validate_every=1000000"],
    )
    with tempfile.TemporaryDirectory() as folder:
        fit = Trainer(settings, Path(folder), lambda _: None)
        corpus, task = build_corpus(settings.data), fit.run.task
        if not isinstance(task, LanguageTask):
            raise TypeError(f"{type(task).__name__} is no language model")
        train, dev = (task.token_stream(corpus.read(part)).long() for part in ("train", "dev"))
        plain = Plain(train, dev, task.text.size, given.steps, given.seed)
        events, ours, theirs, made = iter(fit), 0.0, 0.0, 0
        while plain.done < given.steps:
            start = time.process_time()
            for _ in range(min(TURN, given.steps - plain.done)):
                plain.step()
            theirs += time.process_time() - start
            while ours < theirs and made < given.steps:
                start = time.process_time()
                made += isinstance(next(events), Step)
                ours += time.process_time() - start
        found = task.negative_log_likelihood(corpus.read("dev"))
    print(f"plain loop  {plain.done} steps  {theirs:.0f} CPU s  dev loss {plain.loss():.4f}")
    print(f"regard      {made} steps  {ours:.0f} CPU s  dev loss {found.total / found.count:.4f}")


if __name__ == "__main__":
    main()
