"""Every task by name. No torch here."""

TASKS = {
    "classify": "a text, or two, into one of some classes",
    "tag": "names for stretches of words: people, places, products",
    "understand": "what somebody wants (an intent), and with what (slots)",
    "pretrain": "hidden words and sentences that follow, from plain text, to be built on",
    "language": "how likely a text is, what comes next, and how it goes on",
    "music": "how likely a piece is, as piano roll or in ABC, and how it goes on",
    "translate": "a source text into a target text, with word alignments",
}
