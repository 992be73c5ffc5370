"""Digits in a grid, told by four models: where do they look, and what is it worth?

    python benchmarks/captions.py [--folder runs/captions] [--steps 3000]

Soft attention (the preset `digits-caption`), the same with the doubly stochastic term, hard
attention by REINFORCE, and Show and Tell, which has as many parameters and sees the image once.
Prints exact captions by the number of digits, how often the digits' words looked into the right
cell, the penalty of the doubly stochastic term, and the variance of hard attention's gradient with
its baseline and without. The same command goes on.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from command import regard
from torch import Tensor

from regard.config.presets import preset_paths
from regard.data.synthetic.digits import Digits
from regard.files import write_atomic
from regard.models.caption import doubly_stochastic_penalty
from regard.run import Run
from regard.tasks.caption.examples import CaptionExample

DRAWS = 64  # of hard attention, for the same images
MODELS = {
    "soft": "",
    "doubly": "",
    "hard": 'normalize = "reinforce"\nentropy_weight = 0.02\n',
    "tell": "",
}


def configs(steps: int, hard: int) -> dict[str, str]:
    """The preset, but for what is compared."""
    text = preset_paths()["digits-caption"].read_text("utf-8")
    found = {}
    for name, more in MODELS.items():
        one = re.sub(r"(?m)^steps = .*$", f"steps = {hard if name == 'hard' else steps}", text)
        one = one.replace('kind = "show_attend"\n', f'kind = "show_attend"\n{more}')
        if name == "doubly":
            one = one.replace("[train]\n", "[train]\ndoubly_stochastic_weight = 0.02\n")
        if name == "tell":
            one = one.replace('kind = "show_attend"', 'kind = "show_tell"')
        if name == "hard":
            one = one.replace("[train]\n", f"[train]\nsoft_attention_steps = {hard // 2}\n")
        found[name] = one
    return found


def by_digits(run: Any, settings: dict[str, Any]) -> list[float]:
    """Captions that are exactly right, in per cent, of images with one to four digits."""
    found = []
    for count in range(1, 5):
        corpus = Digits(
            1, **{**settings, "min_digits": count, "max_digits": count, "held_out": 250}
        )
        found.append(run.score(corpus.read("test"))["exact"])
    return found


@torch.no_grad()
def penalty(run: Any, pairs: Sequence[CaptionExample]) -> float:
    """sum_i (1 - sum_t alpha_ti)^2, in the mean over images."""
    total = 0.0
    for batch in run.task.evaluation_batches(pairs):
        told = run.model.eval().decode_with_attention(
            run.model.remember(batch.images), batch.target_in
        )
        total += float(doubly_stochastic_penalty(told.weights, batch.target_valid).sum())
    return total / len(pairs)


def variance(run: Any, pairs: Sequence[CaptionExample], *, baseline: bool) -> float:
    """Of the gradient of the score's parameters over draws, summed, beside its squared mean."""
    model, batch = run.model.train(), run.task.collate(pairs)
    kept = model.reinforce.baseline.clone()
    model.reinforce.eval()  # as it is, or at zero
    if not baseline:
        model.reinforce.baseline.zero_()
    grads: list[Tensor] = []
    for draw in range(DRAWS):
        torch.manual_seed(draw)
        model.zero_grad()
        run.task.reinforce_loss(batch, model.expectation_rate).total.backward()
        grads.append(torch.cat([p.grad.flatten() for p in model.attention.parameters()]))
    model.reinforce.baseline.copy_(kept)
    return float(torch.stack(grads).double().var(0).sum()) / len(pairs) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/captions"))
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--hard-steps", type=int, default=4000)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.folder.mkdir(parents=True, exist_ok=True)
    texts = configs(given.steps, given.hard_steps)
    print("model    parameters  exact  by digits: 1      2      3      4  pointing  penalty")
    for name in given.models:
        write_atomic(given.folder / f"{name}.toml", texts[name].encode())
        regard(given.folder, "train", f"{name}.toml", "--threads", str(given.threads))
        run: Any = Run.load(given.folder / "runs" / name)
        records = list(run.corpus().read("test"))
        scores, settings = (
            run.score(records),
            run.settings.data.model_dump(exclude={"kind", "size"}),
        )
        pairs = list(run.task.examples(records))
        shares = "  ".join(f"{one:5.1f}" for one in by_digits(run, settings))
        count = sum(p.numel() for p in run.model.parameters())
        told = f"{name:8} {count:10,}  {scores['exact']:5.1f}        {shares}"
        if "pointing" in scores:
            told += f"     {scores['pointing']:5.1f}  {penalty(run, pairs):7.2f}"
        print(told, flush=True)
        if name == "hard":
            both = [variance(run, pairs[:48], baseline=one) for one in (True, False)]
            print(
                f"variance of the gradient: {both[0]:.3g} with the baseline, {both[1]:.3g} without"
            )


if __name__ == "__main__":
    main()
