"""Their weights in our models compute what theirs compute, and what we write they read."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention.observe import observe
from regard.convert.folder import ImportedModel, build_imported_model, read_folder, write_folder

SIZE, LENGTHS = 31, (9, 4, 1)
VALID = torch.arange(9) < torch.tensor(LENGTHS)[:, None]
ALL = {"output_hidden_states": True, "output_attentions": True}
ENCODERS = ["bert", "roberta", "distilbert"]


def close(one: Tensor, other: Tensor, where: Tensor | None = None) -> None:
    """Within 1e-5, at real positions."""
    if where is not None:
        one, other = one[where], other[where]
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def ids_of(kind: str) -> Tensor:
    pad = {"roberta": 1, "marian": 30}.get(kind, 0)
    return torch.where(VALID, torch.randint(3, SIZE - 1, VALID.shape), pad)


def layers(stack: Any) -> list[Tensor]:
    """What each block gives, filled when the model runs."""
    seen: list[Tensor] = []
    for block in stack.layers:
        block.register_forward_hook(lambda _, __, given: seen.append(given[0]))
    return seen


def brought(theirs: Any, folder: Any) -> tuple[ImportedModel, Any]:
    theirs.save_pretrained(folder)
    imported = read_folder(folder)
    return imported, build_imported_model(imported)


@pytest.mark.parametrize("kind", ENCODERS)
@torch.no_grad()
def test_an_encoder_is_theirs(kind, theirs, tmp_path):
    other = theirs(kind)
    _, model = brought(other, tmp_path)
    ids, more = ids_of(kind), {}
    if kind == "bert":
        more["token_type_ids"] = torch.randint(2, ids.shape)
    told = other(
        ids, attention_mask=VALID.long(), **more, output_hidden_states=True, output_attentions=True
    )
    seen = layers(model.encoder)
    with observe(model) as weights:
        states = model.encode(ids, VALID, more.get("token_type_ids"))
    for ours, one in zip(seen, told.hidden_states[1:], strict=True):
        close(ours, one, VALID)
    for i, one in enumerate(told.attentions):
        ours = weights[f"encoder.layers.{i}.self_attention"][0]
        close(ours.transpose(1, 2), one.transpose(1, 2), VALID)
    logits = told.prediction_logits if kind == "bert" else told.logits
    close(model.logits(model.masked_word_states(states.states)), logits, VALID)
    if kind == "bert":
        close(states.pooled, other.bert(ids, attention_mask=VALID.long(), **more).pooler_output)
        close(model.following(states.pooled), told.seq_relationship_logits)


@torch.no_grad()
def test_gpt2_is_theirs(theirs, tmp_path):
    other = theirs("gpt2")
    _, model = brought(other, tmp_path)
    ids = ids_of("gpt2")
    told = other(
        ids, attention_mask=VALID.long(), output_hidden_states=True, output_attentions=True
    )
    seen = layers(model.decoder)
    with observe(model) as weights:
        states = model.teacher_forced(None, ids)
    for ours, one in zip(seen[:-1], told.hidden_states[1:-1], strict=True):
        close(ours, one, VALID)
    close(states, told.hidden_states[-1], VALID)  # their last has gone through the final norm
    close(model.logits(states), told.logits, VALID)
    for i, one in enumerate(told.attentions):
        ours = weights[f"decoder.layers.{i}.self_attention"][0]
        close(ours.transpose(1, 2), one.transpose(1, 2), VALID)


@torch.no_grad()
def test_marian_is_theirs(theirs, tmp_path):
    other = theirs("marian")
    _, model = brought(other, tmp_path)
    source, target = ids_of("marian"), torch.randint(3, SIZE, (3, 7))
    target[:, 0] = 30
    told = other(
        source,
        attention_mask=VALID.long(),
        decoder_input_ids=target,
        **ALL,
    )
    read, written = layers(model.encoder), layers(model.decoder)
    with observe(model) as weights:
        memory = model.remember(source, VALID)
        states = model.teacher_forced(memory, target)
    for ours, one in zip(read, told.encoder_hidden_states[1:], strict=True):
        close(ours, one, VALID)
    for ours, one in zip(written, told.decoder_hidden_states[1:], strict=True):
        close(ours, one)
    close(model.logits(states), told.logits)
    for i, one in enumerate(told.encoder_attentions):
        ours = weights[f"encoder.layers.{i}.self_attention"][0]
        close(ours.transpose(1, 2), one.transpose(1, 2), VALID)
    for i in range(3):
        close(weights[f"decoder.layers.{i}.self_attention"][0], told.decoder_attentions[i])
        close(weights[f"decoder.layers.{i}.cross_attention"][0], told.cross_attentions[i])


@pytest.mark.parametrize("kind", [*ENCODERS, "gpt2", "marian"])
@torch.no_grad()
def test_what_is_written_they_read(kind, theirs, reload, tmp_path):
    """Import, export, and their own class: the same logits, bit for bit."""
    other = theirs(kind)
    imported, model = brought(other, tmp_path / "theirs")
    kept = (imported.format, imported.settings, model.state_dict())
    write_folder(tmp_path / "ours", *kept, special_ids=imported.special_ids)
    again = reload(kind, tmp_path / "ours")
    ids = ids_of(kind)
    more = {"decoder_input_ids": torch.randint(3, SIZE, (3, 7))} if kind == "marian" else {}
    one, two = (
        other(ids, attention_mask=VALID.long(), **more),
        again(ids, attention_mask=VALID.long(), **more),
    )
    key = "prediction_logits" if kind == "bert" else "logits"
    where = slice(None) if kind == "marian" else VALID
    torch.testing.assert_close(one[key][where], two[key][where], rtol=0, atol=0)
    back = read_folder(tmp_path / "ours")
    assert (back.settings, back.special_ids) == (imported.settings, imported.special_ids)


@torch.no_grad()
def test_a_bare_encoder_has_no_prefix_and_no_heads(theirs, tmp_path):
    other = theirs("bert").bert
    imported, model = brought(other, tmp_path)
    assert (imported.settings["pooler"], imported.settings["pretrain"]) == (True, "none")
    ids = ids_of("bert")
    told, ours = other(ids, attention_mask=VALID.long()), model.encode(ids, VALID)
    close(ours.states, told.last_hidden_state, VALID)
    close(ours.pooled, told.pooler_output)


@torch.no_grad()
def test_weights_in_parts_are_the_same_weights(theirs, tmp_path):
    other = theirs("gpt2")
    other.save_pretrained(tmp_path / "parts", max_shard_size="4KB")
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    parts, whole = read_folder(tmp_path / "parts"), brought(other, tmp_path / "whole")[0]
    assert parts.weights.keys() == whole.weights.keys()
    assert all(torch.equal(parts.weights[name], whole.weights[name]) for name in whole.weights)


@pytest.mark.parametrize("sides", [(12, 12), (20, 8), (24, 24)], ids=str)
@torch.no_grad()
def test_vit_is_theirs(sides, theirs, tmp_path):
    """Also of images of another size, for which positions are interpolated."""
    other = theirs("vit")
    imported, model = brought(other, tmp_path)
    assert imported.image_head is not None
    assert imported.image_head.labels == tuple(f"LABEL_{n}" for n in range(5))
    images = torch.randn(2, 3, *sides)
    told = other(images, interpolate_pos_encoding=sides != (12, 12), **ALL)
    seen = layers(model.encoder)
    with observe(model) as weights:
        states = model.encode(images)
    for ours, one in zip(seen, told.hidden_states[1:], strict=True):
        close(ours, one)
    for i, one in enumerate(told.attentions):
        close(weights[f"encoder.layers.{i}.self_attention"][0], one)
    head = imported.image_head.head
    close(states.pooled @ head["weight"].T + head["bias"], told.logits)
    close(states.states, other.vit(images, interpolate_pos_encoding=True).last_hidden_state)


@torch.no_grad()
def test_what_is_written_of_a_vit_they_read(theirs, reload, tmp_path):
    other = theirs("vit")
    imported, model = brought(other, tmp_path / "theirs")
    kept = (imported.format, imported.settings, model.state_dict())
    write_folder(tmp_path / "ours", *kept, image_head=imported.image_head)
    again, images = reload("vit", tmp_path / "ours"), torch.randn(2, 3, 12, 12)
    assert torch.equal(other(images).logits, again(images).logits)
    assert again.config.id2label == other.config.id2label
    back = read_folder(tmp_path / "ours")
    assert back.settings == imported.settings
    assert back.image_head is not None
    assert (back.image_head.mean, back.image_head.std) == ((0.5,), (0.5,))


def test_two_classes_have_the_default_names(transformers, theirs, tmp_path):
    """transformers writes no id2label if there are two classes with default names."""
    config = theirs("vit").config
    config.num_labels = 2
    imported, _ = brought(transformers.ViTForImageClassification(config).eval(), tmp_path)
    assert imported.image_head is not None
    assert imported.image_head.labels == ("LABEL_0", "LABEL_1")


@torch.no_grad()
def test_a_bare_vit_leaves_its_pooler(theirs, transformers, tmp_path):
    made = transformers.ViTModel(theirs("vit").config).eval()
    imported, model = brought(made, tmp_path)
    images = torch.randn(2, 3, 12, 12)
    close(model.encode(images).states, made(images).last_hidden_state)
    assert imported.image_head is not None
    assert (imported.image_head.labels, imported.image_head.head) == ((), {})
