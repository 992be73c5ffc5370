"""Readable names of attentions, such as `Decoder 1, cross-attention`."""

import re

MODULE_PATH = re.compile(r"[a-z_]\w*(\.\w+)*")
CONTAINERS = {"layers": "layer", "blocks": "block", "stack": "layer"}
"""Modules that hold numbered parts; after another name, the number says enough."""
PART_NAMES = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "cross": "cross-attention",
    "c2q": "context to question",
    "q2c": "question to context",
}
WRAPPERS = ("learner", "look")  # modules whose names say nothing to a reader


def layer_label(name: str) -> str:
    """Return a module path as words that count from 1; other names are returned unchanged.

    >>> layer_label("encoder.layers.1.self_attention")
    'Encoder 2, self-attention'
    >>> layer_label("1 a word")
    '1 a word'
    """
    if MODULE_PATH.fullmatch(name) is None:
        return name
    words: list[str] = []
    for part in name.split("."):
        word = PART_NAMES.get(part, CONTAINERS.get(part, part.replace("_", " ")))
        if part.isdecimal():
            container = words.pop() if words else "layer"
            words.append(f"{container} {int(part) + 1}")
        elif part not in WRAPPERS and (part not in CONTAINERS or not words) and word not in words:
            words.append(word)
    label = ", ".join(words) or name
    return label[:1].upper() + label[1:]
