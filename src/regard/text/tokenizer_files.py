"""Tokenizer files of unknown origin: checked before the library `tokenizers` reads them.

The library trusts its files: a component may multiply a text until the process is aborted, and a
regular expression may need exponential time. So only known components of limited size are allowed.
"""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers

from regard.errors import InputError
from regard.files import JsonObject
from regard.parsing import decode_utf8, one_line, parse_json_object

MAX_FILE_BYTES = 1 << 28
MAX_TOKEN_ID = 1 << 24
MAX_LIST_LENGTH = 256  # of the parts of a component
MAX_TEXT_CHARACTERS = 2_000  # of a pattern or another text in a component
MAX_GROWTH = 64  # how many times longer replacements may make a text
MODELS = {"BPE", "WordPiece", "WordLevel", "Unigram"}
# fmt: off
COMPONENTS = {
    "normalizer": {
        "BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt",
        "Precompiled", "Prepend", "Replace", "Sequence", "Strip", "StripAccents",
    },
    "pre_tokenizer": {
        "BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "Metaspace",
        "Punctuation", "Sequence", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit",
    },
    "post_processor": {
        "BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing",
    },
    "decoder": {
        "BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Sequence",
        "Strip", "WordPiece",
    },
}
# fmt: on
UNLIMITED_TEXTS = {"precompiled_charsmap"}  # a table of characters, in base 64
REGEX_PARTS = re.compile(
    r"\\.|\[(?:\\.|\[:\^?\w+:\]|[^\]\\])+\]|\(\?(?:#[^)]*\)|[a-zA-Z-]*:|<?[=!>]|>|<\w+>)|\("
    r"|\)|[*+?]|\{\d*,?\d*\}|.",
    re.DOTALL,
)


def load_inner_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Read a tokenizer.json, and check its components first."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path}: more than {MAX_FILE_BYTES >> 20} MB; not a tokenizer")
    data = parse_json_object(decode_utf8(path.read_bytes(), str(path)), str(path))
    check_components(data, str(path))
    with explain_tokenizer_errors(f"{path}: not a tokenizer, or a damaged one"):
        return tokenizers.Tokenizer.from_str(
            json.dumps({**data, "padding": None, "truncation": None}, ensure_ascii=False)
        )


@contextmanager
def explain_tokenizer_errors(problem: str) -> Generator[None]:
    """Turn errors of the library, also a panic in its compiled code, into an `InputError`."""
    try:
        yield
    except BaseException as error:
        # A panic is no `Exception`, and its class has no public name.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{problem} ({one_line(error)})") from None


def check_components(data: JsonObject, location: str) -> None:
    """Refuse unknown components, and known ones that are too large or make texts much longer."""
    for kind, allowed in COMPONENTS.items():
        growth = 1.0
        for component in nested_components(data.get(kind)):
            name = component.get("type")
            if not isinstance(name, str) or name not in allowed:
                raise InputError(f"{location}: {kind} {name!r} is not supported")
            check_sizes(component, f"{location}: {kind} {name}")
            growth *= component_growth(component)
        if growth > MAX_GROWTH:
            raise InputError(
                f"{location}: the {kind} may make a text {growth:,.0f} times longer; "
                f"at most {MAX_GROWTH} times is allowed"
            )
    check_model(data.get("model"), location)
    added_tokens = data.get("added_tokens") or []
    if not isinstance(added_tokens, list):
        raise InputError(f"{location}: added_tokens must be a list")
    for token in added_tokens:
        check_token_id(token.get("id") if isinstance(token, dict) else None, location)


def nested_components(component: object) -> Iterator[JsonObject]:
    """Yield a component, and those that a `Sequence` holds."""
    if component is None:
        return
    if not isinstance(component, dict):
        component = {"type": component}
    yield component
    for value in component.values() if component.get("type") == "Sequence" else ():
        for part in value if isinstance(value, list) else ():
            yield from nested_components(part)


def check_sizes(value: object, location: str, name: str = "") -> None:
    """Check lengths of texts and lists, numbers, and regular expressions of a component."""
    match value:
        case dict():
            for key, item in value.items():
                check_sizes(item, location, key)
        case list():
            if len(value) > MAX_LIST_LENGTH:
                raise InputError(f"{location}: {name} has more than {MAX_LIST_LENGTH} entries")
            for item in value:
                check_sizes(item, location, name)
        case str():
            if len(value) > MAX_TEXT_CHARACTERS and name not in UNLIMITED_TEXTS:
                limit = f"{MAX_TEXT_CHARACTERS:,} characters"
                raise InputError(f"{location}: {name} is longer than {limit}")
            if name == "Regex" and has_nested_repeats(value):
                raise InputError(
                    f"{location}: the pattern {value[:60]!r} repeats a repeated group, which may "
                    "need exponential time"
                )
        case int() | float():
            if not abs(value) <= MAX_TOKEN_ID:
                raise InputError(f"{location}: {name} is more than {MAX_TOKEN_ID:,}")


def component_growth(component: JsonObject) -> float:
    """Return how many times longer a component may make a text, at most."""
    if component.get("type") == "Prepend":
        return max(1.0, len(str(component.get("prepend"))))
    if component.get("type") != "Replace":
        return 1.0
    pattern, content = component.get("pattern"), component.get("content")
    text = pattern.get("String") if isinstance(pattern, dict) else None
    # A regular expression may match an empty text, before every character.
    shortest_match = len(text) if isinstance(text, str) else 0
    content_length = len(content) if isinstance(content, str) else 0
    if not shortest_match:
        return 1.0 + content_length
    return max(1.0, content_length / shortest_match)


def has_nested_repeats(pattern: str) -> bool:
    """Return whether a group with an unbounded repeat is itself repeated, as in `(a+)+`."""
    repeats_in_groups, last_group_repeats = [False], False
    for part in REGEX_PARTS.findall(pattern):
        if part in ("*", "+") or re.fullmatch(r"\{\d*,\}", part):
            if last_group_repeats:
                return True
            repeats_in_groups[-1] = True
        elif part.startswith("(") and not part.startswith("(?#"):
            repeats_in_groups.append(False)
        elif part == ")" and len(repeats_in_groups) > 1:
            last_group_repeats = repeats_in_groups.pop()
            repeats_in_groups[-1] |= last_group_repeats
            continue
        elif part == "?" and last_group_repeats:
            continue  # lazy, or optional: the group may still be repeated
        last_group_repeats = False
    return False


def check_model(model: object, location: str) -> None:
    """Check the kind of the model, and the ids of its vocabulary."""
    if not isinstance(model, dict):
        raise InputError(f"{location}: not a tokenizer (it has no model)")
    kind = model.get("type", guess_model_kind(model))
    if not isinstance(kind, str) or kind not in MODELS:
        raise InputError(f"{location}: model {kind!r} is not supported")
    if model.get("dropout"):
        raise InputError(f"{location}: dropout makes encodings random; remove it")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict | list):
        raise InputError(f"{location}: the model has no vocabulary")
    for token_id in vocabulary.values() if isinstance(vocabulary, dict) else (len(vocabulary),):
        check_token_id(token_id, location)
    options = {name: value for name, value in model.items() if name not in ("vocab", "merges")}
    check_sizes(options, f"{location}: model {kind}")


def guess_model_kind(model: JsonObject) -> str:
    """Return the kind of a model in an old file, which does not say it."""
    return "BPE" if "merges" in model else "WordPiece"


def check_token_id(token_id: object, location: str) -> None:
    if type(token_id) is not int or not 0 <= token_id <= MAX_TOKEN_ID:
        raise InputError(f"{location}: {token_id!r} is not the id of a token")
