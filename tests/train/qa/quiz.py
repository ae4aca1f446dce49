"""An invented quiz in SQuAD's format: who is where with what; of some texts, what they do not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

PEOPLE = ("captain", "judge", "sister", "dog", "children", "class")
THINGS = ("letter", "map", "boat", "board", "train", "cats")
PLACES = ("garden", "river", "hill", "corner", "town", "café")


def write_quiz(path: Path, articles: int, paragraphs: int = 6, seed: int = 0) -> Path:
    """Short texts with a person, a thing and a place in any order, one left out of some, and a question about one."""
    draw = np.random.default_rng(seed)
    data = [
        {
            "title": f"Quiz {number}",
            "paragraphs": [_paragraph(draw, f"{number}-{place}") for place in range(paragraphs)],
        }
        for number in range(articles)
    ]
    path.write_text(json.dumps({"version": "v2.0", "data": data}), "utf-8")
    return path


def save_reader(folder: Path) -> Path:
    """A small BERT that knows the quiz's words, each a token, and nothing else."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = [*PEOPLE, *THINGS, *PLACES, *["in", "the", "end", "and", "who", "what", "where", ",", ".", "?"]]
    known = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    specials = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep")}
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = BertConfig(
        **sizes, vocab_size=len(known), max_position_embeddings=64, initializer_range=0.1, pad_token_id=0
    )
    BertModel(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials).save_pretrained(folder)
    return folder


def _paragraph(draw: np.random.Generator, name: str) -> dict[str, Any]:
    said = {"Who": draw.choice(PEOPLE), "What": draw.choice(THINGS), "Where": draw.choice(PLACES)}
    asked = str(draw.choice(list(said)))
    lost = bool(draw.random() < 0.2)
    words = [str(said[kind]) for kind in draw.permutation(list(said)) if not (lost and kind == asked)]
    text = "In the end, " + ", and ".join(f"the {word}" for word in words) + "."
    answer = str(said[asked])
    answers = [] if lost else [{"text": answer, "answer_start": text.index(answer)}]
    qa = {"id": name, "question": f"{asked}?", "answers": answers, "is_impossible": lost}
    return {"context": text, "qas": [qa]}
