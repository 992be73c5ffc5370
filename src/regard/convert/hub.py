"""Models of the Hugging Face hub, downloaded into the cache of `huggingface_hub`.

Only weights in safetensors, JSON and text files are fetched: no pickle, and no code. `HF_HOME`,
`HF_ENDPOINT` and `HF_HUB_OFFLINE` have the meaning that `huggingface_hub` gives them.
"""

import re
from pathlib import Path

from regard.errors import InputError
from regard.parsing import one_line

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")  # a model, or an owner and a model
DOWNLOADED_FILES = (
    "config.json",
    *("model.safetensors", "model.safetensors.index.json", "model-*.safetensors"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "preprocessor_config.json"),
    *("modules.json", "?_Pooling/config.json", "sentence_bert_config.json"),
    "config_sentence_transformers.json",
)


def find_model_folder(name: Path | str, revision: str | None = None) -> Path:
    """Return a folder of this name, or else download the model of this name from the hub.

    `revision` is a branch, a tag or a commit of the model on the hub.
    """
    folder = Path(name)
    if folder.exists():
        if revision is not None:
            raise InputError(f"{folder}: is a folder here; a revision is for a name on the hub")
        return folder
    if not HUB_NAME.fullmatch(str(name)):
        raise InputError(f"{name}: there is no such folder; give one with config.json")
    return download_model(str(name), revision)


def download_model(name: str, revision: str | None = None) -> Path:
    """Return the folder of a model of the hub in the cache, downloaded if it is not there."""
    try:
        from huggingface_hub import errors, snapshot_download
    except ModuleNotFoundError:
        raise InputError(
            f"{name}: there is no such folder; to download a model of this name from the hub, "
            "pip install 'regard[hub]'"
        ) from None
    at_revision = "" if revision is None else f" at revision {revision!r}"
    try:
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=list(DOWNLOADED_FILES))
        )
    except errors.GatedRepoError:
        raise InputError(
            f"{name}: the owner restricts access; ask for it on the hub, then run `hf auth login`"
        ) from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        raise InputError(
            f"{name}: there is no such folder, and no such public model on the hub{at_revision}; "
            "check the name"
        ) from None
    except errors.HFValidationError as error:
        raise InputError(f"{name}: not a name on the hub ({one_line(error)})") from None
    except Exception as error:  # OSError, or an error of the HTTP library that the hub uses
        raise InputError(
            f"{name}: there is no such folder, and the hub cannot be reached for it"
            f"{at_revision} ({type(error).__name__}); with a network, run `hf download {name} "
            "--local-dir DIR`, copy DIR here and give its path"
        ) from None
