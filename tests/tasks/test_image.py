"""Pictures by class: the loss from its definition, verdicts, and what the class token looked at."""

import math

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

from regard.batching.pictures import PicturePreprocessor
from regard.data.formats.images import ImageReader
from regard.models.vit import Vit
from regard.tasks.classify import EncoderClassifier
from regard.tasks.image import PICTURES_PER_BATCH, ImageTask
from regard.text.labels import Labels

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 8, 12, 1), dtype=np.uint8)
RECORDS = [{"picture": one, "label": "ab"[n % 2]} for n, one in enumerate(PIXELS)]


@pytest.fixture
def task():
    encoder = Vit((8, 12), 1, patch_size=4, dim=8, heads=2, layers=2, dropout=0.3)
    torch.nn.init.normal_(encoder.position.weight)
    pictures = PicturePreprocessor(ImageReader((8, 12), 1))
    return ImageTask(EncoderClassifier(encoder, 2), pictures, Labels(["a", "b"]))


def test_the_loss_is_its_definition(task):
    task.model.eval()
    batch = task.collate(list(task.examples(RECORDS)))
    found = task.loss(batch)
    logits = task.model(batch.inputs).double()
    wanted = sum(
        math.log(sum(math.exp(x) for x in row)) - row[n % 2]
        for n, row in enumerate(logits.tolist())
    )
    assert found.total.item() == pytest.approx(wanted, rel=1e-5)
    assert found.count == 7
    assert task.negative_log_likelihood(list(task.examples(RECORDS))).total.item() == pytest.approx(
        wanted, rel=1e-5
    )


def test_read_now_or_later_is_the_same(task, tmp_path):
    records = []
    for number, record in enumerate(RECORDS):
        path = tmp_path / f"{number}.png"
        Pillow.fromarray(record["picture"][..., 0]).save(path)
        records.append({**record, "picture": str(path)})
    now = task.collate(list(task.examples(RECORDS)))
    later = list(task.examples(records, load_pictures=False))
    assert isinstance(later[0].source[0], str)
    assert torch.equal(task.collate(later).inputs["pictures"], now.inputs["pictures"])
    moved = task.collate_for_training(later, crop=2)
    assert not torch.equal(moved.inputs["pictures"], now.inputs["pictures"])
    assert moved.labels.tolist() == now.labels.tolist()


def test_verdicts_are_in_order_however_many(task):
    many = [PIXELS[n % 7] for n in range(PICTURES_PER_BATCH + 9)]
    counted = []
    found = task.predict(many, on_progress=counted.append)
    assert counted == [PICTURES_PER_BATCH, 9]
    for n, one in enumerate(found):
        assert one.probabilities["a"] == pytest.approx(found[n % 7].probabilities["a"], abs=1e-6)
        assert one.label == max(one.probabilities, key=one.probabilities.__getitem__)
        assert sum(one.probabilities.values()) == pytest.approx(1)
    assert len({one.probabilities["a"] for one in found[:7]}) == 7


def test_what_the_class_token_looked_at(task):
    """Laid over the picture: patch by patch, as its keys say."""
    seen = task.patch_attention_weights(PIXELS[0])
    whole = task.attention_weights(PIXELS[0])
    assert [one.shape for one in seen.values()] == [(2, 2, 3)] * 2
    for name, one in seen.items():
        for row in range(2):
            for column in range(3):
                place = 1 + row * 3 + column
                assert torch.equal(one[:, row, column], whole[name][0, :, 0, place])
        total = one.sum((1, 2)) + whole[name][0, :, 0, 0]
        torch.testing.assert_close(total, torch.ones(2))


def test_an_unknown_label(task):
    with pytest.raises(ValueError, match="record 1: label 'c' is not in the training data"):
        list(task.examples([{"picture": PIXELS[0], "label": "c"}]))
