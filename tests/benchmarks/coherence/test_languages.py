"""Texts in other languages go through every task on the order of sentences: nothing English-only is hidden."""

from __future__ import annotations

import pytest

import ensue
from tests.support import tiny
from tests.support.command import write_lines
from tests.support.raters import InversionRater

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


# Longer ones, for tasks that need several documents of six sentences.
LONGER = {
    "de": [
        "Die Bäckerin steht um drei Uhr auf. Zuerst heizt sie den alten Ofen. Was dann kommt, weiß jeder im "
        "Dorf. Der Teig ruht schon seit dem Abend. Gegen fünf Uhr riecht die ganze Straße nach Brot. Um sechs "
        "öffnet sie die Tür. Als Erster kommt der Postbote. Er will immer zwei Brötchen und eine Zeitung.",
        "Im Herbst wurde die Brücke gesperrt. Ein Riss ging durch den dritten Pfeiler. Die Kinder mussten nun "
        "40 Minuten zur Schule laufen. Niemand will so lange warten. Deshalb schrieb Frau Özdemir an den "
        "Minister. Drei Wochen später kamen Arbeiter mit einem Kran. Im Mai fuhr der erste Bus wieder "
        "hinüber.",
    ],
    "es": [
        "El faro lleva cien años apagado. Cada verano llegan turistas con cámaras. ¿Qué buscan allí? Don "
        "Álvaro les abre la puerta oxidada. Suben despacio los 120 escalones. Desde arriba se ve toda la "
        "isla. Luego bajan y compran limonada. El guarda cuenta las monedas por la noche.",
        "La orquesta perdió su sala en enero. El techo se había caído durante la tormenta. Los músicos "
        "ensayaron en un garaje. Hacía tanto frío que tocaban con guantes. Una vecina les trajo sopa "
        "caliente. En abril dieron un concierto en la plaza. Vinieron más de 300 personas.",
    ],
}


@pytest.mark.parametrize("language", LONGER)
def test_every_task_reads_texts_of_another_language(llama, tmp_path, language):
    """Eight and seven sentences each way, for models that score and for those that rate."""
    rows = [{"id": str(n), "text": text} for n, text in enumerate(LONGER[language])]
    data = write_lines(tmp_path / "texts.jsonl", rows)
    for name, model in (("scored", str(llama)), ("rated", Lengths())):
        how = {"model": model, "data": data, "language": language}
        intruded = ensue.run("intruder", output=tmp_path / name / "i", encoder="none", **how)
        counts = {
            item["cluster"]: len(next(iter(item["outputs"]["values"].values()))) for item in intruded.items
        }
        assert counts == {"0": 8, "1": 7}
        kinds = {item["settings"]["kind"] for item in intruded.items}
        # "was" and "will" are no verbs to negate in German.
        assert kinds == {"untouched", "random", "swapped", "entity"} | ({"hard"} & kinds)
        assert (
            intruded.results["skipped"]["documents that allow no negated edit, which is of English texts"]
            == 2
        )
        inserted = ensue.run("insertion", output=tmp_path / name / "n", removed="none", **how)
        assert len(inserted.items) == 15
        ordered = ensue.run("ordering", output=tmp_path / name / "o", beam=2, **how)
        assert [len(item["outputs"]["order"]) for item in ordered.items] == [8, 7]
        shuffled = ensue.run("shuffle", output=tmp_path / name / "s", shuffles=2, block_size="1,3", **how)
        assert len(shuffled.items) == 8
        rated = write_lines(tmp_path / "rated.jsonl", [{**row, "rating": n} for n, row in enumerate(rows)])
        found = ensue.run("ratings", output=tmp_path / name / "r", **{**how, "data": rated})
        assert len(found.items) == 2
    pairs = write_lines(
        tmp_path / "pairs.jsonl",
        [{"context": rows[0]["text"], "good": rows[0]["text"][:30], "bad": rows[1]["text"][:30]}] * 2,
    )
    done = ensue.run("pairs", model=str(llama), data=pairs, output=tmp_path / "p")
    assert len(done.items) == 2


class Lengths(InversionRater):
    """Rates a text by how its sentences grow."""

    def rate(self, texts):
        return [float(sum(place * len(one) for place, one in enumerate(text))) for text in texts]
