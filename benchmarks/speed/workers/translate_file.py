"""Translate standard input with CTranslate2: its import, its model, and the tokenizer of a run.

python translate_file.py RUN MODEL REPLICAS THREADS < lines
"""

import sys
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

BATCH, WIDTH = 32, 5


def main() -> None:
    run, model, replicas, threads = sys.argv[1:]
    source, target = (
        Tokenizer.from_file(str(Path(run, f"{side}.json"))) for side in ("source", "target")
    )
    translator = ctranslate2.Translator(
        model, inter_threads=int(replicas), intra_threads=int(threads)
    )
    lines = sys.stdin.read().splitlines()
    results = translator.translate_batch(
        [encoding.tokens for encoding in source.encode_batch(lines)],
        max_batch_size=BATCH,
        beam_size=WIDTH,
        length_penalty=1,
    )
    ids = [[target.token_to_id(t) for t in result.hypotheses[0]] for result in results]
    sys.stdout.write("".join(f"{text}\n" for text in target.decode_batch(ids)))


if __name__ == "__main__":
    main()
