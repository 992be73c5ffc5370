"""Builds the task of pretraining from its settings: BERT's objectives or ELMo's."""

from collections.abc import Mapping

from regard.config.settings import Settings
from regard.data.corpus import Corpus
from regard.files import JsonObject
from regard.models.bert import Bert
from regard.models.catalogue import build_model
from regard.models.elmo import Elmo
from regard.models.protocols import require_model
from regard.tasks.base import RunAsset, TaskBuilder, Vocabularies, VocabularyLoader
from regard.tasks.building import find_tokenizer, model_options, train_tokenizer_on_corpus
from regard.tasks.doctor.counts import MemoryProbe, Progress
from regard.tasks.doctor.texts import check_documents
from regard.tasks.encoding import max_tokens
from regard.tasks.pretrain.bilm import BiLmTask
from regard.tasks.pretrain.settings import PretrainSettings
from regard.tasks.pretrain.task import PretrainTask
from regard.tasks.text_vectors import text_vector_options
from regard.text.special_ids import load_tokenizer, special_ids


class PretrainBuilder(TaskBuilder[PretrainSettings, Bert | Elmo]):
    """Reads `PretrainSettings`."""

    def vocabulary_loaders(
        self,
        settings: PretrainSettings,  # noqa: ARG002
    ) -> Mapping[str, VocabularyLoader]:
        return {"text": load_tokenizer}

    def build_vocabularies(self, settings: PretrainSettings, corpus: Corpus) -> dict[str, RunAsset]:
        return {"text": train_tokenizer_on_corpus(settings.text, corpus, "text")}

    def build_model(self, settings: PretrainSettings, vocabularies: Vocabularies) -> Bert | Elmo:
        kind, tokenizer = settings.model.kind, find_tokenizer(vocabularies)
        size = tokenizer.size if kind == "elmo" else special_ids(tokenizer).size
        model = build_model(kind, {**model_options(settings.model), "size": size})
        return model if isinstance(model, Bert) else require_model(model, Elmo)

    def build_task(
        self, settings: PretrainSettings, vocabularies: Vocabularies, model: Bert | Elmo
    ) -> PretrainTask | BiLmTask:
        tokenizer, mask = find_tokenizer(vocabularies), settings.mask
        vector_options = text_vector_options(settings)
        if isinstance(model, Elmo):
            limit = max_tokens(settings, BiLmTask.special_token_count)
            return BiLmTask(model, tokenizer, max_tokens=limit, vector_options=vector_options)
        return PretrainTask(
            model,
            tokenizer,
            max_tokens=max_tokens(settings, PretrainTask.special_token_count),
            rate=mask.rate,
            whole_words=mask.whole_words,
            next_sentence=model.following is not None and mask.next_sentence is not False,
            vector_options=vector_options,
        )

    def check_data(
        self,
        settings: Settings,
        progress: Progress,
        memory_probe: MemoryProbe,  # noqa: ARG002
    ) -> JsonObject:
        return check_documents(settings, progress)


BUILDER = PretrainBuilder()
