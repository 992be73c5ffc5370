"""Every task by name. No torch here."""

TASKS = {
    "classify": "a text, or two, into one of some classes",
    "tag": "names for stretches of words: people, places, products",
    "understand": "what somebody wants (an intent), and with what (slots)",
    "answer": "a question, by a stretch of the text that it is asked of",
    "pretrain": "hidden words and sentences that follow, from plain text, to be built on",
    "chat": "a conversation, turn by turn, about anything or about rows of a table",
    "language": "how likely a text is, what comes next, and how it goes on",
    "summarize": "a document into its summary, some words of which are copied",
    "music": "how likely a piece is, as piano roll or in ABC, and how it goes on",
    "image": "a picture into one of some classes, and which patches of it were looked at",
    "copy": "a sequence of bits, told again after its end",
    "recall": "the item that followed another, which is shown again",
    "bandit": "what to do in a world that is found out by acting in it",
    "fewshot": "a class that is known from a few examples only",
    "caption": "a picture into a sentence on it, and where each word of it looked",
    "fold": "a protein into the states of its residues, or some distances into the others",
    "translate": "a source text into a target text, with word alignments",
}
