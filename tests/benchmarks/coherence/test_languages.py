"""Texts in other languages go through every task on the order of sentences: nothing English-only is hidden."""

from __future__ import annotations

import pytest

import ensue
from tests.support import tiny
from tests.support.command import write_lines

TEXTS = {
    "de": "Am Morgen lag Nebel über dem Fluss. Der Fährmann wartete auf die ersten Gäste. Um acht Uhr kam endlich "
    "eine alte Frau mit zwei Körben. Sie grüßte ihn wie jeden Tag. Dann legte das Boot ab.",
    "es": "La panadera abrió la tienda a las seis. ¿Quién sería el primero? Un niño entró con una moneda en la mano. "
    "Ella le dio el pan más grande. El niño salió corriendo sin decir nada.",
    "ja": "朝、川に霧が出ていた。渡し守は客を待っていた。八時に老婆が来た。"
    "彼女は毎日のように挨拶した。それから舟が出た。",
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny.save_llama(tmp_path_factory.mktemp("llama"), max_length=1024)


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_of_another_language_is_split_and_run(llama, tmp_path, language):
    joiner = "" if language == "ja" else " "
    data = write_lines(tmp_path / "texts.jsonl", [{"id": "a", "text": TEXTS[language]}])
    how = {"model": str(llama), "data": data, "language": language, "joiner": joiner}
    inserted = ensue.run("insertion", output=tmp_path / "i", **how)
    assert len(list(inserted.items)) == 5
    assert {len(item["outputs"]["values"]) for item in inserted.items} == {5}
    ordered = ensue.run("ordering", output=tmp_path / "o", beam=2, **how)
    (item,) = ordered.items
    assert sorted(item["outputs"]["order"]) == list(range(5))
    shuffled = ensue.run("shuffle", output=tmp_path / "s", block_size=1, shuffles=2, **how)
    assert len(list(shuffled.items)) == 2
    rated = write_lines(
        tmp_path / "rated.jsonl",
        [{"text": TEXTS[language], "rating": 3}, {"text": TEXTS[language][::-1], "rating": 1}],
    )
    found = ensue.run("ratings", output=tmp_path / "r", **{**how, "data": rated})
    assert len(next(iter(found.items))["outputs"]["gains"]) == 5
