"""Classification of images: the loss, predictions, and the attention of the class token."""

import math

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

from regard.batching.images import ImagePreprocessor
from regard.data.formats.images import ImageReader
from regard.models.vit import Vit
from regard.tasks.encoder_classifier import EncoderClassifier
from regard.tasks.image.task import IMAGES_PER_BATCH, ImageTask
from regard.text.labels import Labels
from regard.view.terminal import Surface

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 8, 12, 1), dtype=np.uint8)
RECORDS = [{"image": pixels, "label": "ab"[n % 2]} for n, pixels in enumerate(PIXELS)]


@pytest.fixture
def task():
    encoder = Vit((8, 12), 1, patch_size=4, dim=8, heads=2, layers=2, dropout=0.3)
    torch.nn.init.normal_(encoder.position.weight)
    images = ImagePreprocessor(ImageReader((8, 12), 1))
    return ImageTask(EncoderClassifier(encoder, 2), images, Labels(["a", "b"]))


def test_loss_equals_its_definition(task):
    task.model.eval()
    batch = task.collate(list(task.examples(RECORDS)))
    loss = task.loss(batch, 0)
    logits = task.model(batch.inputs).double()
    expected = sum(
        math.log(sum(math.exp(x) for x in row)) - row[n % 2]
        for n, row in enumerate(logits.tolist())
    )
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert loss.count == 7
    likelihood = task.negative_log_likelihood(RECORDS)
    assert likelihood.total.item() == pytest.approx(expected, rel=1e-5)
    task.label_smoothing = 0.2
    assert task.loss(batch, 0).total.item() != pytest.approx(expected, rel=1e-5)
    assert task.negative_log_likelihood(RECORDS).total.item() == likelihood.total.item()


def test_files_can_be_read_at_once_or_for_their_batch(task, tmp_path):
    records = []
    for number, record in enumerate(RECORDS):
        path = tmp_path / f"{number}.png"
        Pillow.fromarray(record["image"][..., 0]).save(path)
        records.append({**record, "image": str(path)})
    now = task.collate(list(task.examples(RECORDS, load_images=True)))
    later = list(task.examples(records))
    assert isinstance(later[0].image, str)
    assert torch.equal(task.collate(later).inputs["images"], now.inputs["images"])
    task.crop_padding = 2
    augmented = task.collate_for_training(later)
    assert not torch.equal(augmented.inputs["images"], now.inputs["images"])
    assert augmented.labels.tolist() == now.labels.tolist()


def test_predictions_of_several_batches_are_in_order(task):
    records = [{"image": PIXELS[n % 7]} for n in range(IMAGES_PER_BATCH + 9)]
    counts: list[int] = []
    predictions = task.predict(records, on_progress=counts.append)
    assert counts == [IMAGES_PER_BATCH, 9]
    for n, prediction in enumerate(predictions):
        probabilities = prediction.probabilities
        expected = predictions[n % 7].probabilities["a"]
        assert probabilities["a"] == pytest.approx(expected, abs=1e-6)
        assert prediction.label == max(probabilities, key=probabilities.__getitem__)
        assert sum(probabilities.values()) == pytest.approx(1)
    assert len({prediction.probabilities["a"] for prediction in predictions[:7]}) == 7


def test_attention_of_the_class_token(task):
    """The weights of the patches are in the order of the keys, row by row."""
    weights_by_layer = task.patch_attention_weights(PIXELS[0])
    all_weights = task.attention_weights(PIXELS[0])
    assert [weights.shape for weights in weights_by_layer.values()] == [(2, 2, 3)] * 2
    for name, weights in weights_by_layer.items():
        for row in range(2):
            for column in range(3):
                key = 1 + row * 3 + column
                assert torch.equal(weights[:, row, column], all_weights[name][0, :, 0, key])
        total = weights.sum((1, 2)) + all_weights[name][0, :, 0, 0]
        torch.testing.assert_close(total, torch.ones(2))


def test_score_and_text_for_a_terminal(task, tmp_path):
    path = tmp_path / "image.png"
    Pillow.fromarray(PIXELS[0][..., 0]).save(path)
    record = task.parse(str(path), "input 1")
    assert record == {"image": str(path)}
    [prediction] = task.predict([record])
    assert list(prediction.as_dict()) == ["label", "probabilities"]
    assert task.attention_map(record).title == f"{prediction.label}: {path}"
    text = task.render(record, Surface(), layer=1)
    assert text.startswith(f"{prediction.label} ")
    assert "Layer 1, by head" in text
    with pytest.raises(ValueError, match="--layer must be from 1 to 2, not 3"):
        task.render(record, Surface(), layer=3)
    metrics = task.score(RECORDS)
    assert list(metrics) == ["accuracy", "accuracy_signature", "f1", "loss", "images"]
    assert metrics["accuracy_signature"] == (
        "accuracy|classes:2|top:1|crops:1|size:8x12|fit:crop|v:1"
    )


def test_lines_without_an_image_raise_an_error(task, tmp_path):
    with pytest.raises(ValueError, match=r"input 1: gone.png: there is no such image"):
        task.parse("gone.png", "input 1")
    path = tmp_path / "bad.png"
    path.write_text("no pixels")
    with pytest.raises(ValueError, match=f"input 2: {path}: not an image"):
        task.parse(str(path), "input 2")


def test_unknown_label_raises_an_error(task):
    with pytest.raises(ValueError, match="record 1: label 'c' is not in the training data"):
        list(task.examples([{"image": PIXELS[0], "label": "c"}]))
