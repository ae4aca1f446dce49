"""The loss on packed rows is that of each text on its own: the engine's log-likelihood, or a plain loop's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

import ensue
from ensue.backends.hf.adapted import masked_network
from ensue.backends.names import load_model
from ensue.models.request import Policy
from ensue.scoring.masked import specials_of
from ensue.train.lm.objective import LanguageObjective, Masking
from ensue.train.lm.rows import Frame, Rows, make_pieces
from tests.support import tiny

CPU = torch.device("cpu")
TEXTS = [" ".join(tiny.SENTENCES[i : i + n]) for i, n in ((0, 1), (2, 3), (5, 2), (7, 1), (9, 2))]


def causal(folder):
    model = load_model(str(folder), device="cpu", dtype="float32")
    bos = model._bos(Policy())
    return model, LanguageObjective(model.network, Frame(() if bos is None else (bos,)))


@pytest.mark.parametrize(
    ("save", "options"), [(tiny.save_llama, {}), (tiny.save_llama, {"bos": True}), (tiny.save_gpt2, {})]
)
def test_the_loss_is_the_log_likelihood_that_the_engine_gives(tmp_path, save, options):
    model, objective = causal(save(tmp_path / "model", max_length=256, **options))
    assert objective.packed
    pieces = make_pieces(model.tokenizer, TEXTS, objective.frame, 256)
    rows = Rows(pieces.ids, objective.frame, 256, CPU, packed=True)
    assert len(rows) < len(TEXTS)
    scored = ensue.score(TEXTS, model=model)
    with torch.inference_mode():
        found = [objective.total(batch) for batch in rows.batches(2)]
    assert sum(count for _, count in found) == sum(one.tokens for one in scored.scores)
    total = sum(float(loss) for loss, _ in found)
    assert total == pytest.approx(-sum(one.logprob for one in scored.scores), rel=1e-5)
    figures = objective.figures(rows, 2)
    assert figures["dev_loss"] == pytest.approx(total / sum(count for _, count in found))
    assert figures["perplexity"] == pytest.approx(math.exp(figures["dev_loss"]))


def test_a_text_does_not_see_its_neighbours_in_a_row(tmp_path):
    model, objective = causal(tiny.save_llama(tmp_path / "model", max_length=256))

    def loss_beside(other: str) -> tuple[float, float]:
        ids = [
            make_pieces(model.tokenizer, [text], objective.frame, 256).ids[0] for text in (TEXTS[1], other)
        ]
        rows = Rows(ids, objective.frame, 256, CPU, packed=True)
        (batch,) = rows.batches(1)
        assert batch.text_count == 2
        first = int(batch.ids[0, 0]) == int(ids[0][0])
        states = objective.states(batch.ids.long(), batch.texts, batch.places)
        return states[batch.texts == (1 if first else 2)]

    with torch.inference_mode():
        one, other = loss_beside(TEXTS[0]), loss_beside(TEXTS[3])
    assert torch.allclose(one, other, atol=1e-5)


def test_a_model_with_a_window_has_rows_of_one_text(tmp_path):
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=16, vocab_size=40, sliding_window=4,
    )  # fmt: skip
    objective = LanguageObjective(MistralForCausalLM(config).eval(), Frame())
    assert not objective.packed
    pieces = [np.arange(1, n, dtype=np.int32) for n in (9, 13)]
    rows = Rows(pieces, Frame(), 20, CPU, packed=objective.packed)
    with torch.inference_mode():
        found = [objective.total(batch) for batch in rows.batches(2)]
        expected = 0.0
        for piece in pieces:
            ids = torch.from_numpy(piece).long()[None]
            table = objective.model(ids).logits[0, :-1].log_softmax(-1)
            expected -= float(table.gather(1, ids[0, 1:, None]).sum())
    assert [count for _, count in found] == [18]
    assert float(found[0][0]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("save", [tiny.save_bert, tiny.save_roberta])
def test_the_masked_loss_is_that_of_a_plain_loop_at_the_masked_positions(tmp_path, save):
    folder = save(tmp_path / "model", max_length=256)
    model = load_model(str(folder), device="cpu", dtype="float32")
    specials = specials_of(model.tokenizer, "model")
    frame = Frame(specials.before, specials.after)
    vocabulary = model.network.config.vocab_size
    objective = LanguageObjective(
        model.network, frame, masking=Masking(specials.mask, 0.15, vocabulary), seed=3
    )
    assert objective.packed
    pieces = make_pieces(model.tokenizer, TEXTS, frame, 256)
    rows = Rows(pieces.ids, frame, 256, CPU, packed=True)
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    with torch.inference_mode():
        for batch in rows.batches(8):
            loss, count = objective.total(batch, torch.Generator().manual_seed(7))
            own = batch.token_count - batch.text_count * frame.extra
            assert count == round(0.15 * own)
            picks, read = objective._masked(
                batch.ids.long(), batch.own, count, torch.Generator().manual_seed(7)
            )
            assert len(set(picks.tolist())) == count
            assert bool(batch.own.flatten()[picks].all())
            expected = 0.0
            for row in range(len(batch.ids)):
                for number in range(1, int(batch.texts[row].max()) + 1):
                    where = (batch.texts[row] == number).nonzero()[:, 0]
                    logits = plain(input_ids=read[row, where][None]).logits[0].log_softmax(-1)
                    for place, column in enumerate(where.tolist()):
                        if row * batch.ids.shape[1] + column in set(picks.tolist()):
                            expected -= float(logits[place, int(batch.ids[row, column])])
            assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_tokens_are_masked_replaced_and_kept_in_their_shares(tmp_path):
    model = load_model(str(tiny.save_bert(tmp_path / "model")), device="cpu", dtype="float32")
    objective = LanguageObjective(model.network, Frame(), masking=Masking(4, 0.5, 190))
    ids = torch.full((40, 100), 199)
    picks, read = objective._masked(ids, torch.ones_like(ids, dtype=torch.bool), 2000, None)
    found = read.flatten()[picks]
    masked, kept = float((found == 4).float().mean()), float((found == 199).float().mean())
    assert masked == pytest.approx(0.8, abs=0.04)
    assert kept == pytest.approx(0.1, abs=0.03)
    assert int((read != ids).sum()) == round((1 - kept) * 2000)


def test_an_encoder_keeps_its_weights_under_its_new_head(tmp_path):
    base = load_model(str(tiny.save_encoder(tmp_path / "encoder")), device="cpu", dtype="float32")
    network = masked_network(base)
    ids = torch.arange(5, 15)[None]
    with torch.inference_mode():
        expected = base.network(ids)[0]
        found = network.base_model(ids)[0]
    assert torch.allclose(expected, found, atol=1e-6)
    embedding, head = network.get_input_embeddings().weight, network.get_output_embeddings().weight
    assert embedding.data_ptr() == head.data_ptr()
    learned = {name for name, value in network.named_parameters() if value.requires_grad}
    assert learned
    assert all(name.startswith("cls.") for name in learned)
