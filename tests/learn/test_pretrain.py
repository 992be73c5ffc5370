"""GPT-2 learns to say a word again, BERT to fill in what the other half of a palindrome shows."""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.tasks.loss import cross_entropy

MASK, FIRST, SIZE, HALF = 1, 2, 10, 4


def train(model: nn.Module, loss: Callable[[], Tensor], steps: int, rate: float) -> float:
    """Seconds that it took."""
    start = time.process_time()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return time.process_time() - start


def letters(count: int) -> Tensor:
    return torch.randint(FIRST, SIZE, (count, HALF))


def test_gpt2_says_it_again(seed, unchecked):
    model = Gpt2(SIZE, dim=32, heads=4, layers=2, max_positions=2 * HALF, dropout=0.0).train()
    where = (torch.arange(2 * HALF - 1) >= HALF - 1).expand(64, -1)

    def loss() -> Tensor:
        text = letters(64).repeat(1, 2)
        states = model.teacher_forced(None, text[:, :-1])
        found = cross_entropy(model.output, states, text[:, 1:], where)
        return found.total / found.count

    seconds = train(model, loss, 250, 1e-2)
    with torch.no_grad():
        heard = letters(300)
        _, state = model.eval().read(model.begin(300), heard[:, :-1])
        tokens, said = heard[:, -1], []
        for _ in range(HALF):
            told, state = model.step(state, tokens)
            tokens = told.argmax(-1)
            said.append(tokens)
    right = (torch.stack(said, 1) == heard).all(1).float().mean().item()
    print(f"gpt2: {right:.3f} after {seconds:.1f} s, seed {seed}")
    assert right > 0.9, f"seed {seed}"


def test_bert_fills_in_palindromes(seed, unchecked):
    model = Bert(
        *(SIZE,), dim=32, heads=4, layers=2, max_positions=2 * HALF, dropout=0.0, pretrain="masked"
    )
    real = torch.ones(64, 2 * HALF, dtype=torch.bool)

    def asked() -> tuple[Tensor, Tensor, Tensor]:
        """A palindrome, which letters are asked for, and the text with masks in their places."""
        half, left = letters(64), torch.rand(64, HALF) < 0.5  # one letter of each pair is seen
        text, chosen = torch.cat([half, half.flip(1)], 1), torch.cat([left, ~left.flip(1)], 1)
        return text, chosen, text.masked_fill(chosen, MASK)

    def loss() -> Tensor:
        text, chosen, seen = asked()
        states = model.encode(seen, real).states
        found = cross_entropy(model.output, model.masked_word_states(states), text, chosen)
        return found.total / found.count

    seconds = train(model.train(), loss, 250, 4e-3)
    with torch.no_grad():
        text, chosen, seen = asked()
        states = model.eval().encode(seen, real).states[chosen]
        guessed = model.logits(model.masked_word_states(states)).argmax(-1)
    right = (guessed == text[chosen]).float().mean().item()
    print(f"bert: {right:.3f} after {seconds:.1f} s, seed {seed}")
    assert right > 0.9, f"seed {seed}"
