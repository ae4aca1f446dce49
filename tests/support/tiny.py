"""Tiny random-weight models of each family, saved as model folders with a tokenizer trained on a few sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

SENTENCES = (
    "The sun rose over the hill, and the birds began to sing.",
    "She opened the old letter and read it twice before she spoke.",
    "Nobody had expected the train to arrive so early that morning.",
    "The café on the corner, the one with the green door, was closed.",
    "He wrote the answer on the board, and the whole class laughed.",
    "When the rain stopped, the children ran into the garden again.",
    "Where are you going, asked the captain, looking at the map.",
    "The summary follows the story, but the ending is another one.",
    "A small boat drifted down the river while the town was asleep.",
    "They counted the votes again, and the result was the same.",
    "My sister keeps three cats and a dog that is afraid of them.",
    "In the end the judge agreed that the contract had been broken.",
)

_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
# Wide enough that scores of different orders differ clearly.
_STD = 0.3


def save_llama(folder: Path, *, bos: bool = False, seed: int = 0, max_length: int = 128) -> Path:
    """A Llama; with `bos` its tokenizer puts <s> first."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _byte_level(("<s>", "</s>"), before=("<s>",) if bos else ())
    config = LlamaConfig(
        **_SIZES,
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=max_length,
        initializer_range=_STD,
        **_ids(tokenizer, bos="<s>", eos="</s>"),
    )
    return _save(folder, LlamaForCausalLM, config, seed, _fast(tokenizer, bos="<s>", eos="</s>"))


def save_reader(folder: Path, *, max_length: int = 128, max_sentence: int = 32) -> Path:
    """A reader whose encoder and head are random."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from ensue.backends.hf.reader_network import READER, ReaderNetwork

    base = save_encoder(folder.with_name(f"{folder.name}-base"), max_length=max_length)
    torch.manual_seed(3)
    reading = {"max_length": max_length, "max_sentence": max_sentence}
    READER.save_whole(
        folder, ReaderNetwork(AutoModel.from_pretrained(base)), AutoTokenizer.from_pretrained(base), reading
    )
    return folder


def save_long_rope(folder: Path, *, border: int, max_length: int = 1024) -> Path:
    """A Phi-3, whose positions are others in a text beyond the border."""
    from transformers import Phi3Config, Phi3ForCausalLM

    tokenizer = _byte_level(("<s>", "</s>"))
    config = Phi3Config(
        **_SIZES,
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=max_length,
        original_max_position_embeddings=border,
        initializer_range=_STD,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0, 1.1, 1.2, 1.3],
            "long_factor": [1.5, 4.0, 9.0, 20.0],
            "original_max_position_embeddings": border,
        },
        **_ids(tokenizer, bos="<s>", eos="</s>", pad="</s>"),
    )
    return _save(folder, Phi3ForCausalLM, config, 0, _fast(tokenizer, bos="<s>", eos="</s>"))


def save_lowering_llama(folder: Path, *, seed: int = 0, max_length: int = 128) -> Path:
    """A Llama whose tokenizer lowers case and drops accents and spaces, as BERT's does."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _word_piece()
    config = LlamaConfig(
        **_SIZES,
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=max_length,
        initializer_range=_STD,
        **_ids(tokenizer, pad="[PAD]"),
    )
    return _save(folder, LlamaForCausalLM, config, seed, _fast_bert(tokenizer))


def save_gpt2(folder: Path, *, seed: int = 0, max_length: int = 128) -> Path:
    """A GPT-2, which has a BOS token and does not put it first."""
    from transformers import GPT2Config, GPT2LMHeadModel

    end = "<|endoftext|>"
    tokenizer = _byte_level((end,))
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_positions=max_length,
        n_embd=_SIZES["hidden_size"],
        n_layer=_SIZES["num_hidden_layers"],
        n_head=_SIZES["num_attention_heads"],
        initializer_range=_STD,
        **_ids(tokenizer, bos=end, eos=end),
    )
    return _save(folder, GPT2LMHeadModel, config, seed, _fast(tokenizer, bos=end, eos=end))


def save_bert(folder: Path, *, seed: int = 0, max_length: int = 128) -> Path:
    """A BERT with its masked-language-model head and a WordPiece tokenizer."""
    from transformers import BertForMaskedLM

    tokenizer = _word_piece()
    return _save(folder, BertForMaskedLM, _bert_config(tokenizer, max_length), seed, _fast_bert(tokenizer))


def save_encoder(folder: Path, *, seed: int = 0, max_length: int = 128, layers: int = 2) -> Path:
    """A BERT without a head: it encodes and cannot score."""
    from transformers import BertModel

    tokenizer = _word_piece()
    config = _bert_config(tokenizer, max_length)
    config.num_hidden_layers = layers
    return _save(folder, BertModel, config, seed, _fast_bert(tokenizer))


def save_roberta(folder: Path, *, seed: int = 0, max_length: int = 128) -> Path:
    """A RoBERTa, whose positions count from its padding id (1) on; `max_length` is what a text may have."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    tokenizer = _byte_level(("<s>", "<pad>", "</s>", "<unk>", "<mask>"), before=("<s>",), after=("</s>",))
    config = RobertaConfig(
        **_SIZES,
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=max_length + 2,
        type_vocab_size=1,
        initializer_range=_STD,
        **_ids(tokenizer, bos="<s>", eos="</s>", pad="<pad>"),
    )
    fast = _fast(
        tokenizer, bos="<s>", eos="</s>", pad="<pad>", unk="<unk>", mask="<mask>", cls="<s>", sep="</s>"
    )
    return _save(folder, RobertaForMaskedLM, config, seed, fast)


def _bert_config(tokenizer: Any, max_length: int) -> Any:
    from transformers import BertConfig

    return BertConfig(
        **_SIZES,
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=max_length,
        initializer_range=_STD,
        **_ids(tokenizer, pad="[PAD]"),
    )


@cache
def _byte_level(specials: Sequence[str], before: Sequence[str] = (), after: Sequence[str] = ()) -> Any:
    """A byte-level BPE, which can spell anything, with `before` and `after` put around every text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    byte_level = processors.ByteLevel(trim_offsets=False)
    template = _template(tokenizer, before, after)
    tokenizer.post_processor = processors.Sequence([byte_level, template]) if before else byte_level
    return tokenizer


@cache
def _word_piece() -> Any:
    """Letters, and the commonest words whole; a trained vocabulary would be another one in every process."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    words = Counter(re.findall(r"\w+|[^\w\s]", " ".join(SENTENCES).lower()))
    letters = sorted({letter for word in words for letter in word})
    common = sorted((word for word in words if len(word) > 1), key=lambda word: (-words[word], word))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate([*pieces, *common][:200])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = _template(tokenizer, ("[CLS]",), ("[SEP]",))
    return tokenizer


def _template(tokenizer: Any, before: Sequence[str], after: Sequence[str]) -> Any:
    from tokenizers import processors

    single = [*before, "$A", *after]
    return processors.TemplateProcessing(
        single=" ".join(single),
        pair=" ".join([*single, "$B", *after]),
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in {*before, *after}],
    )


def _fast(tokenizer: Any, **specials: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        clean_up_tokenization_spaces=False,
        **{f"{kind}_token": token for kind, token in specials.items()},
    )


def _fast_bert(tokenizer: Any) -> Any:
    return _fast(tokenizer, pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]")


def _ids(tokenizer: Any, **specials: str) -> dict[str, int]:
    """Token ids as a configuration names them."""
    return {f"{kind}_token_id": tokenizer.token_to_id(token) for kind, token in specials.items()}


def _save(folder: Path, kind: Any, config: Any, seed: int, tokenizer: Any) -> Path:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = kind(config)
        for parameter in network.parameters():
            # Biases and the like start at zero, which would leave code that drops them untested.
            if parameter.ndim == 1:
                parameter.data += _STD * torch.randn_like(parameter)
    folder.mkdir(parents=True, exist_ok=True)
    network.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
