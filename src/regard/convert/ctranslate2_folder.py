"""Write a run as a folder of CTranslate2."""

from pathlib import Path

from regard.engines.ctranslate2_cache import EngineModel
from regard.engines.ctranslate2_model import SpecialTokens, supported_model
from regard.errors import InputError
from regard.run import Run
from regard.tasks.doctor.texts import unknown_id
from regard.tasks.text_engine import EngineUser, tokens_of
from regard.text.special_ids import special_ids


def export_ctranslate2(run: Run, folder: Path, location: str, *, int8: bool) -> None:
    """Write the model of a run to a new folder that CTranslate2 reads, with its vocabularies."""
    try:
        parts = run.task.engine_model() if isinstance(run.task, EngineUser) else encoder_parts(run)
        parts.write(folder, int8=int8)
    except InputError as error:
        raise InputError(f"{location}: cannot be exported to CTranslate2; {error}") from None


def encoder_parts(run: Run) -> EngineModel:
    """Return the BERT of a run, without its head, which CTranslate2 does not have."""
    model, text = supported_model(run.task.exportable_model()), run.vocabularies.get("text")
    if text is None:
        raise InputError(f"the task {run.task.name} reads no text")
    special = special_ids(text)
    tokens = [*tokens_of(text), *(f"<mask {n}>" for n in range(text.size, special.size))]
    unknown = unknown_id(text)
    names = (special.start, special.end, special.start if unknown is None else unknown)
    return EngineModel(model, [tokens], SpecialTokens(*(tokens[n] for n in names)))
