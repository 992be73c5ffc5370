"""`regard embed`: one vector for each text."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from jaxtyping import Float

from regard.batch_prediction.line_stream import decode_lines
from regard.cli.options import DeviceOption, RunArgument, SetOption
from regard.cli.predict import STDIN_LOCATION
from regard.errors import InputError
from regard.files import write_atomic
from regard.run import Run

TEXT_SUFFIXES, JSON_SUFFIXES = (".txt", ".tsv"), (".json", ".jsonl")


def embed(
    folder: RunArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT…", help="Texts. Default: lines of standard input."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write a JSON object per text, with text and embedding."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write: .npy (one array), .jsonl or .txt. Default: standard output.",
        ),
    ] = None,
    device: DeviceOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the vector of each TEXT, or of each line of standard input, in order.

    A text is cut after vectors.max_tokens tokens. The table [vectors] of the run sets the pooling.
    """
    suffix = output_suffix(output, as_json)
    run = Run.load(folder, device=device or "auto").override(overrides or ())
    texts = inputs or stdin_texts()
    content = to_bytes(texts, run.embed(texts), suffix)
    if output is None:
        sys.stdout.write(content.decode())
        return
    write_atomic(output, content)
    print(f"{output}: {len(texts)} vectors written")


def stdin_texts() -> list[str]:
    """Return the lines of standard input; raise an error for the first that is not text."""
    texts: list[str] = []
    for line in decode_lines(sys.stdin.buffer, STDIN_LOCATION):
        if isinstance(line, InputError):
            raise line
        texts.append(line)
    return texts


def output_suffix(output: Path | None, as_json: bool) -> str:
    """Return the format as the suffix of a file; raise an error for an unknown one."""
    if output is None:
        return ".jsonl" if as_json else ".txt"
    suffix = output.suffix.lower()
    known = (".npy", *JSON_SUFFIXES, *TEXT_SUFFIXES)
    if suffix not in known:
        raise InputError(f"{output}: unknown format {suffix!r}; use one of {', '.join(known)}")
    if as_json and suffix not in JSON_SUFFIXES:
        raise InputError(f"{output}: --json needs a file ending in {' or '.join(JSON_SUFFIXES)}")
    return suffix


def to_bytes(texts: Sequence[str], vectors: Float[np.ndarray, "n d"], suffix: str) -> bytes:
    """Return the file: an array, JSON objects, or the numbers of a vector on each line."""
    if suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, vectors, allow_pickle=False)
        return buffer.getvalue()
    if suffix in JSON_SUFFIXES:
        rows = zip(texts, vectors.tolist(), strict=True)
        lines = [json.dumps({"text": t, "embedding": v}, ensure_ascii=False) for t, v in rows]
    else:
        lines = [" ".join(f"{value:.9g}" for value in vector) for vector in vectors]
    return "".join(f"{line}\n" for line in lines).encode()
