"""Runs from folders of Hugging Face's, and folders from runs."""

from pathlib import Path

import pytest
import torch

from regard.convert.run import export_run, import_run
from regard.decoding.constraints import Constraints
from regard.decoding.prompts import ID_SHIFT
from regard.models.catalogue import build_model
from regard.run import Run
from regard.tasks.generation import Decoding, build_search
from regard.tasks.language.task import LanguageTask
from regard.tasks.load import resolve_settings
from regard.tasks.pretrain.task import PretrainTask
from regard.text.external import ExternalTokenizer
from regard.text.special import PAD, START
from regard.text.train import train_tokenizer
from regard.training.trainer import Trainer

TEXT = "the cat sat on the mat. a dog ran to the log.\n"
SMALL = {"dim": 12, "heads": 2, "layers": 2, "max_positions": 24}


def quiet(_: str) -> None:
    pass


@pytest.fixture(params=["bert", "gpt2"])
def own(request, tmp_path) -> Path:
    """A run of ours, hardly trained."""
    (tmp_path / "text.txt").write_text(TEXT * 60)
    data = {"kind": "text", "train": str(tmp_path / "text.txt"), "unit": "line"}
    tasks = {
        "bert": {
            "task": "pretrain",
            "text": {"kind": "wordpiece", "size": 60},
            "model": {"kind": "bert", **SMALL, "pretrain": "both"},
            "train": {"steps": 2, "max_tokens": 12, "examples_per_batch": 4},
        },
        "gpt2": {
            "task": "language",
            "text": {"kind": "byte_bpe", "size": 300},
            "model": {"kind": "gpt2", **SMALL},
            "train": {"steps": 2, "context_length": 12, "examples_per_batch": 4},
            "decode": {"kind": "greedy", "max_length": 6},
        },
    }
    settings = resolve_settings({"data": data, **tasks[request.param]})
    list(Trainer(settings, tmp_path / "own", quiet))
    return tmp_path / "own"


def test_out_and_back(own, tmp_path, transformers):
    export_run(own, tmp_path / "folder")
    notes: list[str] = []
    made = import_run(tmp_path / "folder", tmp_path / "back", on_message=notes.append)
    assert not notes
    one, back = Run.load(own), Run.load(tmp_path / "back")
    assert type(back.task) is type(made.task) is type(one.task)
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, back.model.state_dict()[name]), name
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "folder").eval()
    ids = torch.tensor([[1, *one.vocabularies["text"].encode_ids([TEXT])[0][:8], 2]])
    with torch.no_grad():
        state = theirs(ids).last_hidden_state
        if isinstance(one.task, LanguageTask):
            ours = one.model.eval().teacher_forced(None, ids)
        else:
            ours = one.model.eval().encode(ids, torch.ones_like(ids, dtype=torch.bool)).states
    assert torch.allclose(ours, state, atol=1e-5)
    if isinstance(one.task, PretrainTask):
        assert one.predict(["the [MASK] sat"]) == back.predict(["the [MASK] sat"])
    else:
        ours, theirs = (dict(run.task.next_tokens("the cat")) for run in (one, back))
        assert ours == pytest.approx(theirs)


def test_with_their_ids_a_search_says_the_same():
    """Ids of ours, moved about: the same model under other numbers."""
    own = train_tokenizer("characters", [TEXT], 60)
    model = build_model("gpt2", {**SMALL, "size": own.size}).eval()
    tokenizers = own, ExternalTokenizer.from_tokenizer(own)
    # PAD and START, which ours never says, are tokens like others there
    rules = Constraints(5), Constraints(5, forbidden=(PAD, START, ID_SHIFT + PAD, ID_SHIFT + START))
    for kind in ("greedy", "beam"):
        decode = resolve_settings({"task": "language", "decode": {"kind": kind}}).decode
        ours, theirs = (
            LanguageTask(model, tokenizer, decoding=Decoding(build_search(decode), rule)).complete(
                ["the cat", "a"]
            )
            for tokenizer, rule in zip(tokenizers, rules, strict=True)
        )
        for a, b in zip(ours, theirs, strict=True):
            assert a[0].ids == b[0].ids
            assert a[0].log_prob == pytest.approx(b[0].log_prob)


def test_what_cannot_be(own, tmp_path):
    export_run(own, tmp_path / "folder")
    with pytest.raises(ValueError, match="own: holds a run already"):
        import_run(tmp_path / "folder", own)
    with pytest.raises(ValueError, match="folder: exists already"):
        export_run(own, tmp_path / "folder")
    (tmp_path / "folder" / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="there is no tokenizer"):
        import_run(tmp_path / "folder", tmp_path / "new")
    assert not (tmp_path / "new").exists()
