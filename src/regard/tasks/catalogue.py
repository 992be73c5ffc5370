"""Every task by name. No torch here."""

TASKS = {
    "translate": "a source text into a target text, with word alignments",
}
