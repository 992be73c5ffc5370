"""Fine-tuned heads, through the pipelines and classes of transformers."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.convert.run import export_run, import_run
from regard.run import Run

BERT = {"kind": "bert", "dim": 12, "heads": 2, "layers": 2, "max_positions": 40}
WORDPIECE = {"kind": "wordpiece", "size": 60, "min_count": 1}
WORDS = ["ann", "bob", "saw", "the", "lion", "again", "unknowable"]
REVIEWS = [
    {"text": f"the {noun} was {word}", "label": label}
    for label, word in (("good", "lovely"), ("bad", "awful"), ("odd", "strange"))
    for noun in ("film", "plot", "cast")
]
TAGGED = [
    {"tokens": ["ann", "saw", "the", "lion"], "tags": ["B-person", "O", "O", "B-animal"]},
    {"tokens": ["the", "lion", "king"], "tags": ["O", "B-animal", "I-animal"]},
] * 3
QUESTIONS = [
    {
        "question": f"who saw {name}",
        "context": f"ann saw {name} today",
        "answers": [{"text": "ann", "answer_start": 0}],
    }
    for name in ("bob", "eve", "max")
]


def fit(task: str, data: Any, folder: Path, **settings: Any) -> Run:
    """Return a run with large random weights, whose probabilities are far from equal."""
    model = None if "start" in settings else settings.pop("model", BERT)
    texts = {} if "start" in settings else {"text": WORDPIECE}
    run = regard.fit(
        task,
        data,
        model,
        steps=1,
        folder=folder,
        settings={**texts, **settings, "train": {"examples_per_batch": 4, "max_tokens": 24}},
        progress=False,
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in run.model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.3)
    return run


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> Path:
    """A run of an imported BERT, whose tokenizer is not one of ours."""
    folder = tmp_path_factory.mktemp("imported")
    data = [{"text": ". ".join(record["text"] for record in REVIEWS)}] * 4
    model = {**BERT, "pretrain": "both"}
    settings = {"text": WORDPIECE, "train": {"examples_per_batch": 4, "max_tokens": 24}}
    run = regard.fit(
        "pretrain",
        data,
        model,
        steps=1,
        folder=folder / "own",
        settings=settings,
        progress=False,
    )
    export_run(run, folder / "bert")
    import_run(folder / "bert", folder / "run")
    return folder / "run"


def pipeline(transformers: Any, task: str, folder: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.pipeline(task, model=str(folder), **options)


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_classifier_says_the_same(is_imported, imported, tmp_path, transformers):
    settings = {"start": {"run": str(imported)}} if is_imported else {}
    run = fit("classify", REVIEWS, tmp_path / "run", **settings)
    export_run(run, tmp_path / "bert")
    texts = ["the film was lovely", "plot", "the strange cast was awful", ""]
    classify = pipeline(transformers, "text-classification", tmp_path / "bert", top_k=None)
    for text, ours, theirs in zip(texts, run.predict(texts), classify(texts), strict=True):
        assert theirs[0]["label"] == ours.text, text
        probabilities = {item["label"]: item["score"] for item in theirs}
        assert probabilities == pytest.approx(ours.as_dict()["probabilities"], abs=1e-4)
    assert max(theirs[0]["score"] for theirs in classify(texts)) > 0.5
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == dict(zip("012", run.vocabularies["labels"].names, strict=True))


def test_pairs_and_long_texts_are_read_alike(tmp_path, transformers):
    pairs = [{**record, "pair": f"a {record['label']} film"} for record in REVIEWS]
    run = fit("classify", pairs, tmp_path / "run")
    export_run(run, tmp_path / "bert")
    classify = pipeline(transformers, "text-classification", tmp_path / "bert", top_k=None)
    theirs = classify({"text": "the plot was awful", "text_pair": "a good film"})
    ours = run("the plot was awful\ta good film").as_dict()["probabilities"]
    assert {item["label"]: item["score"] for item in theirs} == pytest.approx(ours, abs=1e-4)
    long = "the film was lovely " * 12
    [theirs] = classify([long], truncation=True)
    assert {item["label"]: item["score"] for item in theirs} == pytest.approx(
        run(long).as_dict()["probabilities"], abs=1e-4
    )


def test_a_tagger_says_the_same(tmp_path, transformers):
    run = fit("tag", TAGGED, tmp_path / "run", head={"crf": False})
    export_run(run, tmp_path / "bert")
    tagger = pipeline(transformers, "token-classification", tmp_path / "bert", ignore_labels=[])
    text = " ".join(WORDS)
    theirs = {item["start"]: item for item in tagger(text)}
    starts = [sum(len(word) + 1 for word in WORDS[:n]) for n in range(len(WORDS))]
    row = run.task.word_inputs.row(WORDS, 24)
    with torch.no_grad():
        logits = run.model.eval()(run.task.word_inputs.tensors([row])).tags[0]
    best, tag_ids = logits.softmax(-1).max(-1)
    assert [theirs[n]["entity"] for n in starts] == [run.task.tags.names[k] for k in tag_ids]
    assert [theirs[n]["score"] for n in starts] == pytest.approx(best.tolist(), abs=1e-4)


def test_an_answer_has_the_same_logits(tmp_path, transformers):
    run = fit("answer", QUESTIONS, tmp_path / "run")
    export_run(run, tmp_path / "bert")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "bert")
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")
    question, context = "who saw eve", "today ann saw max and eve"
    inputs = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        output = model.eval()(**inputs)
    [(_, asked, read)] = run.task.tokenize([{"question": question, "text": context}])
    row, start = run.task.row(asked, read, 0, len(read.tokens))
    assert inputs["input_ids"][0].tolist() == row
    with torch.no_grad():
        ours = run.model.eval()(run.task.layout.tensors([row], [start]))
    span = slice(start, start + len(read.tokens))
    torch.testing.assert_close(output.start_logits[0, span], ours.starts[0, 1:], rtol=0, atol=1e-4)
    torch.testing.assert_close(output.end_logits[0, span], ours.ends[0, 1:], rtol=0, atol=1e-4)
    scores = output.start_logits[0, span, None] + output.end_logits[0, None, span]
    first, last = divmod(int(scores.triu().where(scores.triu() != 0, -1e9).argmax()), len(scores))
    expected = context[offsets[start + first][0] : offsets[start + last][1]]
    assert run({"question": question, "text": context}).answer == expected


@pytest.mark.parametrize(
    ("task", "data", "settings", "message"),
    [
        ("classify", REVIEWS, {"head": {"pooling": "mean"}}, "head.pooling cannot be exported"),
        ("classify", REVIEWS, {"head": {"hidden_dim": 4}}, "head.hidden_dim cannot be exported"),
        ("classify", REVIEWS, {"start": {"lora_rank": 2}}, "LoRA .* cannot be exported"),
        ("tag", TAGGED, {}, "head.crf = true cannot be exported"),
        ("answer", QUESTIONS, {"head": {"allow_no_answer": True}}, "allow_no_answer cannot be"),
        ("answer", QUESTIONS, {"text": {"kind": "words"}}, "text.kind = words cannot be exported"),
    ],
)
def test_other_heads_are_refused(task, data, settings, message, tmp_path, imported):
    if "start" in settings:
        settings = {"start": {**settings["start"], "run": str(imported)}}
    run = fit(task, data, tmp_path / "run", **settings)
    with pytest.raises(ValueError, match=rf"^export: .*{message}") as error:
        export_run(run, tmp_path / "bert")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "bert").exists()


def test_the_encoder_of_an_exported_classifier_comes_back(tmp_path):
    run = fit("classify", REVIEWS, tmp_path / "run")
    export_run(run, tmp_path / "bert")
    notes: list[str] = []
    back = import_run(tmp_path / "bert", tmp_path / "back", on_message=notes.append)
    assert "the head (classifier.bias, classifier.weight) is left out" in notes[0]
    for name, weight in run.model.encoder.state_dict().items():
        assert torch.equal(weight, back.model.state_dict()[name]), name
    assert isinstance(back.model, nn.Module)
