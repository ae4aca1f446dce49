"""From a model's name to the model: short name, folder, GGUF file, word vectors, endpoint, or hub id."""

from __future__ import annotations

import difflib
import logging
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ensue.backends.hf.loading import Options
from ensue.backends.shipped import SHIPPED, shipped_folder
from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.models.protocols import Model

BASELINES = ("random", "unigram")
# What learns from a task's own training set, or needs none.
UNTRAINED = ("most-frequent", "hypothesis-only", "cbow", "bilstm", "bilstm-attention", "source-overlap")
# What summarises without a model: people themselves, a story's first, best or nearest sentences.
SUMMARISERS = ("human", "lead", "oracle", "retrieval", "written")
# What has a short name and cannot be run, by its format.
_NO_MODELS = {
    "spacy": "a pipeline that finds answers for QAGS",
    "wordnet": "what METEOR looks synonyms up in",
}
_LONGEST_NAME = 100
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def load_model(
    model: str,
    *,
    name: str | None = None,
    dtype: str = "float32",
    device: str = "auto",
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    batch_tokens: int | None = None,
    share_prefixes: bool = True,
    concurrency: int = 8,
) -> Model:
    """The model of that name, ready to use.

    `model` is a short name (`smollm2`, `minilm`, …), a folder, a `.gguf` file, an `http(s)://` endpoint,
    `random`, `unigram`, `unigram:FILE`, `cbow:FILE` (word vectors as text), `most-frequent`, `hypothesis-only`,
    `cbow`, `bilstm`, `bilstm-attention` (which learn from a task's training set), `source-overlap` (for QAGS's
    metrics that need no model), `minilm-qa`, `smollm2-qg` (which come with the package), `human`, `lead`, `oracle`,
    `retrieval`, `written` (summaries without a model), or a hub id such as `gpt2-medium`.
    `name` is what it is called in results, where a folder's or a file's own name would not do; scores do not depend
    on it. `concurrency` is for endpoints: how many requests are under way at once.
    """
    options = Options(dtype, device, revision, allow_pickle, trust_remote_code, batch_tokens, share_prefixes)
    if name is not None:
        _check_name(name, model)
    if model.startswith(("http://", "https://")):
        from ensue.backends.endpoint.model import EndpointModel

        served = EndpointModel(model, concurrency=concurrency)
        if name is not None:
            served.card = replace(served.card, name=name)
        return served
    if model in _fixed_names():
        return _of_fixed_name(model, options)
    if model == "unigram" or model.startswith("unigram:"):
        return _unigram(model.partition(":")[2] or "bundled")
    if model.startswith("cbow:"):
        from ensue.backends.words.vectors import from_text

        return from_text(Path(model.removeprefix("cbow:")).expanduser())
    if model in catalog():
        entry = catalog()[model]
        if entry.format in _NO_MODELS:
            raise EnsueError(f"{model} is {_NO_MODELS[entry.format]}, not a model that can be run.")
        from ensue.backends.pulling import pull_model

        # What an earlier version fetched says less about itself than the catalogue does.
        return _from_folder(pull_model(entry), name or model, options, {"weights_name": entry.weights_name})
    path = Path(model).expanduser()
    if model.endswith(".gguf"):
        if not os.path.isfile(path):
            raise EnsueError(f"There is no file {model}.")
        from ensue.backends.hf.gguf import converted

        return _from_folder(converted(path), name or path.stem, options, {"source": str(path)})
    # Not Path.is_dir and Path.exists, which raise on a name that is too long.
    if model and os.path.isdir(path):
        return _from_folder(path, name or path.resolve().name, options, {})
    if os.path.exists(path) or model.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(model):
        raise EnsueError(
            f"{model} is not a model: give a folder, a .gguf file, an endpoint or a model's name."
        )
    return _from_hub(model, name or model, options)


def _fixed_names() -> frozenset[str]:
    return frozenset({"random", *UNTRAINED, *SUMMARISERS, *SHIPPED})


def _of_fixed_name(model: str, options: Options) -> Model:
    from ensue.backends.baselines import RandomModel, SummaryBaseline, Untrained

    if model in SHIPPED:
        return _from_folder(shipped_folder(model), model, options, {})
    if model == "random":
        return RandomModel()
    return Untrained(model) if model in UNTRAINED else SummaryBaseline(model)


def _check_name(name: str, model: str) -> None:
    """A model may be called anything that fits a line; what has no weights of its own keeps its name."""
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise EnsueError(f"--name is one line of at most {_LONGEST_NAME} characters, not {name!r}.")
    if model in _fixed_names() or model.startswith(("unigram", "cbow:")):
        raise EnsueError(f"{model} has a name already; --name is for folders, files, endpoints and hub ids.")


def _unigram(source: str) -> Model:
    from ensue.backends.baselines import UnigramModel
    from ensue.text.documents import read_documents

    documents = read_documents(source).items
    return UnigramModel((" ".join(document.sentences) for document in documents), source)


def _from_folder(folder: Path, name: str, options: Options, facts: dict[str, Any]) -> Model:
    from ensue.backends.hf import loading as hf

    config = hf.read_config(folder)
    if "SuffixLM" in (config.get("architectures") or []):
        from ensue.backends.suffixlm.model import load_suffixlm

        return load_suffixlm(folder, name, config, options)
    if "DiscourseEncoder" in (config.get("architectures") or []):
        from ensue.backends.discourse.model import load_discourse

        return load_discourse(folder, name, config, options)
    if "WordVectors" in (config.get("architectures") or []):
        from ensue.backends.words.vectors import load_word_vectors

        return load_word_vectors(folder, name)
    if "ExtractiveAnswerer" in (config.get("architectures") or []):
        from ensue.backends.qa.folder import load_answerer

        return load_answerer(folder, name, config, options)
    if str((config.get("architectures") or [""])[0]).endswith("ForQuestionAnswering"):
        from ensue.backends.qa.folder import load_hf_answerer

        return load_hf_answerer(folder, name, config, options, facts)
    if "QuestionGenerator" in (config.get("architectures") or []):
        from ensue.backends.qg.generator import load_question_generator

        return load_question_generator(folder, name, config, options)
    if config.get("is_encoder_decoder"):
        from ensue.backends.hf.seq2seq import is_seq2seq, load_seq2seq

        if is_seq2seq(config):
            return load_seq2seq(folder, name, config, options, facts)
    kind = hf.kind_of(folder, config)
    if kind == "causal":
        from ensue.backends.hf.language import CausalModel

        return CausalModel(hf.load(folder, name, "AutoModelForCausalLM", kind, options, facts))
    if kind == "masked":
        from ensue.backends.hf.language import MaskedModel

        return MaskedModel(hf.load(folder, name, "AutoModelForMaskedLM", kind, options, facts))
    from ensue.backends.hf.encoder import EncoderModel

    return EncoderModel(hf.load(folder, name, "AutoModel", kind, options, facts), folder)


def _from_hub(model: str, name: str, options: Options) -> Model:
    from ensue.backends.hf import loading as hf

    hf.need_torch(f"Loading {model}")
    import huggingface_hub

    # It would say of every attempt that it failed; what came of them is said once, below.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    patterns = ["*.json", "*.txt", "*.model", "*.safetensors", "1_Pooling/*"]
    if options.allow_pickle:
        patterns += ["*.bin", "*.pt"]
    if options.trust_remote_code:
        patterns += ["*.py"]
    try:
        folder = huggingface_hub.snapshot_download(model, revision=options.revision, allow_patterns=patterns)
    except Exception as error:
        known = [*catalog(), *SHIPPED, *BASELINES, *UNTRAINED, *SUMMARISERS]
        close = difflib.get_close_matches(model, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"names that need no hub: {', '.join(known)}."
        raise EnsueError(
            f"{model} is no folder here and could not be fetched from the model hub "
            f"({type(error).__name__}); {hint}"
        ) from None
    commit = Path(folder).name
    return _from_folder(
        Path(folder), name, replace(options, revision=commit), {"source": f"hub {model}@{commit}"}
    )
