"""Compare a model in the format of CTranslate2 with the model that it was made from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.errors import InputError
from regard.models.bert import Bert
from regard.models.gpt2 import Gpt2
from regard.models.transformer import Transformer
from regard.text.special import END, START

MAX_DIFFERENCE = 1e-3  # of a log-probability or a state; the weights are in float32
PROBE_LENGTH = 6


@torch.inference_mode()
def check_ctranslate2_model(
    folder: Path, model: Transformer | Gpt2 | Bert, vocabularies: Sequence[Sequence[str]]
) -> None:
    """Raise an error unless CTranslate2 computes the same numbers for a row of tokens."""
    import ctranslate2

    model.eval()
    size = min(len(tokens) for tokens in vocabularies)
    ids = [int(n) for n in np.linspace(min(4, size - 1), size - 1, PROBE_LENGTH)]
    texts = [[tokens[n] for n in ids] for tokens in vocabularies]
    options = {"inter_threads": 1, "intra_threads": 1, "compute_type": "float32"}
    match model:
        case Transformer():
            translator = ctranslate2.Translator(str(folder), **options)
            theirs = translator.score_batch([texts[0]], [texts[1]])[0].log_probs
            source = torch.tensor([[*ids, END]])
            memory = model.remember(source, torch.ones_like(source, dtype=torch.bool))
            states = model.teacher_forced(memory, torch.tensor([[START, *ids]]))
            ours = target_log_probs(model.logits(states[0]), [*ids, END])
        case Gpt2():
            generator = ctranslate2.Generator(str(folder), **options)
            theirs = generator.score_batch([texts[0]])[0].log_probs
            states = model.teacher_forced(None, torch.tensor([ids[:-1]]))
            ours = target_log_probs(model.logits(states[0]), ids[1:])
        case Bert():
            encoder = ctranslate2.Encoder(str(folder), **options)
            theirs = np.array(encoder.forward_batch([ids]).last_hidden_state)
            row = torch.tensor([ids])
            ours = model.encode(row, torch.ones_like(row, dtype=torch.bool)).states
    difference = np.abs(np.asarray(theirs) - ours.numpy()).max()
    if not difference <= MAX_DIFFERENCE:
        raise InputError(
            f"{folder}: CTranslate2 computes other numbers (they differ by {difference:.2g}); "
            "use the built-in engine, and report this as a bug"
        )


def target_log_probs(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """Return the log-probability of each id."""
    return logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
