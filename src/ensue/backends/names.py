"""From a model's name to the model: short name, folder, GGUF file, word vectors, endpoint, or hub id."""

from __future__ import annotations

import difflib
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ensue.backends.hf.loading import ModelFolder, Options, need_torch
from ensue.errors import EnsueError
from ensue.fetch.catalog import Entry, catalog
from ensue.fetch.store import entry_at, pull, pulled
from ensue.lazy import load
from ensue.models.protocols import Model


class WeightlessModel(NamedTuple):
    """What a model without weights is, and what makes it."""

    about: str
    loader: str


class Shipped(NamedTuple):
    """Where a model lies within `ensue.backends.adapters`, what it does, and the command that makes one."""

    folder: str
    does: str
    command: str
    about: str
    licence: str = "Apache-2.0"


BASELINES = {
    "random": WeightlessModel("baseline: chance", "ensue.backends.baselines:RandomModel"),
    "unigram": WeightlessModel("baseline: words without order", "ensue.backends.baselines:load_unigram"),
}
SHIPPED = {
    "minilm-qa": Shipped(
        "qa", "answers questions", "ensue train qa", "answers for QAGS: an adapter and span head on minilm"
    ),
    "minilm-mlm": Shipped(
        "mlm", "predicts masked words", "ensue train lm", "masked scoring: an adapter and a head on minilm"
    ),
    "smollm2-qg": Shipped("qg", "asks questions", "ensue train qg", "asks for QAGS: an adapter on smollm2"),
    "smollm2-reader": Shipped(
        "reader",
        "says which sentences belong",
        "ensue train reader",
        "finds sentences that do not belong, for profiles: an adapter and head on half of smollm2",
    ),
}
# What is named with a file, as in unigram:FILE.
_OF_FILES = {
    "unigram": "ensue.backends.baselines:load_unigram",
    "cbow": "ensue.backends.words:load_text_vectors",
}
# What loads a folder, by an architecture its config.json states.
_ARCHITECTURES = {
    "SuffixLM": "ensue.backends.suffixlm.model:load_suffixlm",
    "DiscourseEncoder": "ensue.backends.discourse.model:load_discourse",
    "WordVectors": "ensue.backends.words:load_word_vectors",
    "ExtractiveAnswerer": "ensue.backends.qa.network:load_answerer",
    "QuestionGenerator": "ensue.backends.qg.generator:load_question_generator",
    "EntityGrid": "ensue.backends.grid.model:load_entity_grid",
    "NeuralEntityGrid": "ensue.backends.grid.network:load_neural_grid",
    "AdaptedCausalLM": "ensue.backends.hf.adapted:load_adapted_causal",
    "AdaptedMaskedLM": "ensue.backends.hf.adapted:load_adapted_masked",
    "CoherenceRater": "ensue.backends.hf.rater:load_rater",
    "SentenceReader": "ensue.backends.hf.reader:load_reader",
}
# Those of them that run without torch.
_WITHOUT_TORCH = (_ARCHITECTURES["WordVectors"], _ARCHITECTURES["EntityGrid"])
# The same by the ending of the first architecture, for those of transformers.
_SEQ2SEQ = "ForConditionalGeneration"
_ENDINGS = {
    "ForQuestionAnswering": "ensue.backends.qa.network:load_hf_answerer",
    _SEQ2SEQ: "ensue.backends.hf.seq2seq:load_seq2seq",
    "ForMaskedLM": "ensue.backends.hf.language:load_masked",
    "ForPreTraining": "ensue.backends.hf.language:load_masked",
    "ForCausalLM": "ensue.backends.hf.language:load_causal",
    "LMHeadModel": "ensue.backends.hf.language:load_causal",
}
_ENCODER = "ensue.backends.hf.encoder:load_encoder"
# What a configuration holds where pictures or sounds are read beside text.
_OTHER_SENSES = ("vision_config", "audio_config", "speech_config", "image_config", "text_config")
# What has a short name and cannot be run, by its format.
_NO_MODELS = {
    "spacy": "a pipeline that parses sentences for QAGS and entity grids",
    "wordnet": "what METEOR looks synonyms up in",
}
_LONGEST_NAME = 100
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


_LANGUAGE_MODELS = ("ensue.backends.hf.language:", "ensue.backends.hf.adapted:")
COMPILE = ("auto", "never", "always")
DTYPES = ("auto", "float32", "bfloat16", "float16")


def load_model(
    model: str,
    *,
    name: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    batch_tokens: int | None = None,
    compile: str = "auto",
    share_prefixes: bool = True,
    concurrency: int = 8,
    timeout: float = 60.0,
) -> Model:
    """Load the model of that name.

    `model` is a short name that `ensue models list` shows (`smollm2`, `minilm`, `random`, …), a folder, a `.gguf`
    file, an `http(s)://` endpoint, `unigram:FILE`, `cbow:FILE` (word vectors as text), or a hub id such as
    `gpt2-medium`. `name` is what it is called in results, where a folder's or a file's own name would not do; scores
    do not depend on it. `dtype` is `float32`, `bfloat16`, `float16` or `auto`: `bfloat16` for language models on a
    GPU that has it, else `float32`. `compile` says whether a causal model is compiled on a GPU: `always`, `never`, or
    `auto`, where the work is long enough to repay it. `concurrency` and `timeout` are for endpoints: how many
    requests are under way at once, and the seconds one may take.
    """
    for option, value, known in (("compile", compile, COMPILE), ("dtype", dtype, DTYPES)):
        if value not in known:
            raise EnsueError(f"There is no {option}={value}; choose {', '.join(known)}.")
    options = Options(
        dtype, device, revision, allow_pickle, trust_remote_code, batch_tokens, share_prefixes, compile
    )
    if name is not None:
        _check_name(name, model)
    if model.startswith(("http://", "https://")):
        _check_served(options)
        served: Any = load("ensue.backends.endpoint.model:open_endpoint")(
            model, concurrency=concurrency, timeout=timeout
        )
        if name is not None:
            served.card = replace(served.card, name=name)
        return served  # type: ignore[no-any-return]
    kind, colon, file = model.partition(":")
    if colon and kind in _OF_FILES:
        return load(_OF_FILES[kind])(file)  # type: ignore[no-any-return]
    if model in BASELINES:
        return load(BASELINES[model].loader)()  # type: ignore[no-any-return]
    if model in SHIPPED:
        return _from_folder(ModelFolder.read(shipped_folder(model), model, options))
    return _from_folder(_find_folder(model, name, options))


def listed(systems: Mapping[str, str]) -> list[dict[str, Any]]:
    """List every name that needs no hub, with what `ensue models list` shows of it; `systems` are the benchmarks'."""
    rows: list[dict[str, Any]] = [
        _row(e.name, pulled(e), e.megabytes, e.licence, e.about) | {"weights": e.weights_name or e.name}
        for e in catalog().values()
    ]
    rows += [
        _row(name, ships(name), 0, s.licence, s.about) | {"weights": name} for name, s in SHIPPED.items()
    ]
    abouts = {name: known.about for name, known in BASELINES.items()} | dict(systems)
    return rows + [_row(name, True, 0, "", about) for name, about in abouts.items()]


def _row(name: str, here: bool, megabytes: int, licence: str, about: str) -> dict[str, Any]:
    return {"name": name, "here": here, "megabytes": megabytes, "licence": licence, "about": about}


def ships(name: str) -> bool:
    """Return whether this installation has one of the models that come with the package."""
    return (_shipped(name) / "config.json").is_file()


def shipped_folder(name: str) -> Path:
    """Return the folder of a model that comes with the package; refuse where an installation lacks it."""
    model = SHIPPED[name]
    if not ships(name):
        raise EnsueError(
            f"This installation has no {name}, the model that {model.does} by default; name a folder or another "
            f"model that {model.does}, or make one with {model.command}."
        )
    return _shipped(name)


def _shipped(name: str) -> Path:
    return Path(str(files("ensue.backends"))) / "adapters" / SHIPPED[name].folder


def pull_model(entry: Entry) -> Path:
    """Return the folder of a model of the catalogue, fetched and converted if it is not there yet."""
    return pull(entry, {"gguf": _from_gguf, "word-vectors": _from_index})


def _from_gguf(pieces: list[Path], work: Path) -> Path:
    """Put the pieces of a split file together, in order, and convert it."""
    target = work / "model.gguf"
    with target.open("wb") as sink:
        for piece in pieces:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, sink, 1 << 20)
            piece.unlink()
    return load("ensue.backends.hf.gguf:convert")(target, work / "converted")  # type: ignore[no-any-return]


def _from_index(pieces: list[Path], work: Path) -> Path:
    return load("ensue.backends.words:from_index")(work / "data", work / "converted")  # type: ignore[no-any-return]


def _check_served(options: Options) -> None:
    """Refuse what says how a model is run here, which a server decides for itself.

    `float32` is passed over: `ensue qags` and fine-tuning ask for it unasked.
    """
    given = {"--dtype": options.dtype not in {"auto", "float32"}, "--compile": options.compile != "auto"}
    given |= {"--batch-tokens": options.batch_tokens is not None}
    if ours := [name for name, is_given in given.items() if is_given]:
        raise EnsueError(f"A server decides for itself how its model is run: leave out {' and '.join(ours)}.")


def _check_name(name: str, model: str) -> None:
    """Refuse a name that does not fit a line, and any for a model that has no weights of its own."""
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise EnsueError(f"--name is one line of at most {_LONGEST_NAME} characters, not {name!r}.")
    if model in {*BASELINES, *SHIPPED} or model.partition(":")[0] in _OF_FILES:
        raise EnsueError(f"{model} has a name already; --name is for folders, files, endpoints and hub ids.")


def _find_folder(model: str, name: str | None, options: Options) -> ModelFolder:
    """Find the folder of a short name, a path or a hub id, fetched or converted where need be."""
    if model in catalog():
        entry = catalog()[model]
        if entry.format in _NO_MODELS:
            raise EnsueError(f"{model} is {_NO_MODELS[entry.format]}, not a model that can be run.")
        return ModelFolder.read(pull_model(entry), name or model, options, _stated(entry))
    path = Path(model).expanduser()
    if model.endswith(".gguf"):
        if not os.path.isfile(path):
            raise EnsueError(f"There is no file {model}.")
        folder = load("ensue.backends.hf.gguf:converted")(path)
        return ModelFolder.read(folder, name or path.stem, options, {"source": str(path)})
    # Not Path.is_dir and Path.exists, which raise on a name that is too long.
    if model and os.path.isdir(path):
        known = entry_at(path)
        facts = {} if known is None else _stated(known)
        return ModelFolder.read(path, name or path.resolve().name, options, facts)
    if os.path.exists(path) or model.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(model):
        raise EnsueError(
            f"{model} is not a model: give a folder, a .gguf file, an endpoint or a model's name."
        )
    return _from_hub(model, name or model, options)


def _stated(entry: Entry) -> dict[str, str]:
    """Return what the catalogue states of a folder: what an earlier version fetched says less about itself."""
    return {"weights_name": entry.weights_name, "package": entry.digest}


def _from_hub(model: str, name: str, options: Options) -> ModelFolder:
    need_torch(f"Loading {model}")
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
        known = [*catalog(), *SHIPPED, *BASELINES]
        close = difflib.get_close_matches(model, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"names that need no hub: {', '.join(known)}."
        raise EnsueError(
            f"{model} is not a folder here and could not be fetched from the model hub "
            f"({type(error).__name__}); {hint}"
        ) from None
    commit = Path(folder).name
    facts = {"source": f"hub {model}@{commit}"}
    return ModelFolder.read(Path(folder), name, replace(options, revision=commit), facts)


def _from_folder(folder: ModelFolder) -> Model:
    loader = _loader(folder)
    if loader not in _WITHOUT_TORCH:
        need_torch(f"Loading {folder.name}")
        folder = folder.with_dtype(fast=loader.startswith(_LANGUAGE_MODELS))
    return load(loader)(folder)  # type: ignore[no-any-return]


def _loader(folder: ModelFolder) -> str:
    """Look up what loads a folder by the architecture its configuration states."""
    architectures = [str(one) for one in folder.config.get("architectures") or []]
    if not architectures:
        raise EnsueError(
            f"{folder.path / 'config.json'} names no architecture, so it is unclear what the model can do."
        )
    for known, loader in _ARCHITECTURES.items():
        if known in architectures:
            return loader
    name, pairs = architectures[0], bool(folder.config.get("is_encoder_decoder"))
    for ending, loader in _ENDINGS.items():
        if name.endswith(ending) and (pairs or ending != _SEQ2SEQ):
            return loader
    if others := [key for key in _OTHER_SENSES if key in folder.config]:
        raise EnsueError(
            f"{folder.path} is a model of more than text ({name}, with {others[0]}), which cannot be run here; give "
            f"its language model alone, saved as one (…ForCausalLM), or serve it and give the endpoint."
        )
    if name.endswith(_SEQ2SEQ):
        raise EnsueError(
            f"{folder.path} states {name} and no encoder-decoder, so it is unclear what the model is; "
            f"give one saved as …ForCausalLM."
        )
    return _ENCODER
