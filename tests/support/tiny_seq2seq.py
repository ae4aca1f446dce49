"""A tiny random-weight BART with a tokenizer, saved as a model folder."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny import _STD, _byte_level, _fast, _ids, _save


def save_bart(folder: Path, *, seed: int = 0, max_length: int = 128) -> Path:
    """A BART, whose tokenizer puts <s> before and </s> after every text and has </s> as its separator."""
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = _byte_level(("<s>", "<pad>", "</s>", "<unk>"), before=("<s>",), after=("</s>",))
    ids = _ids(tokenizer, bos="<s>", eos="</s>", pad="<pad>")
    config = BartConfig(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=max_length,
        init_std=_STD,
        decoder_start_token_id=ids["eos_token_id"],
        forced_eos_token_id=None,
        **ids,
    )
    fast = _fast(tokenizer, bos="<s>", eos="</s>", pad="<pad>", unk="<unk>", sep="</s>", cls="<s>")
    return _save(folder, BartForConditionalGeneration, config, seed, fast)
