"""`ensue plan`: every benchmark by its own code, tables and JSON, and bad input in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.errors import EnsueError
from ensue.fetch.store import home
from ensue.runs.planning import counting, target
from ensue.runs.planning.guessing import GuessedTokenizer
from ensue.runs.planning.hardware import find_hardware, profiles
from ensue.runs.planning.plan import Plan, plan
from ensue.runs.planning.tables import plan_json
from tests.benchmarks.squality.invented import story_row, write_rows
from tests.benchmarks.superglue.folders import write_superglue
from tests.support.command import here, in_process_of_its_own, refused
from tests.support.corpus import write_corpus
from tests.support.tiny import save_encoder, save_llama


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> str:
    return str(save_llama(tmp_path_factory.mktemp("plan") / "llama", max_length=512))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    return str(write_corpus(tmp_path_factory.mktemp("corpus") / "d.jsonl", (6, 8, 7)))


def test_a_plan_has_the_items_and_tokens_of_the_run(llama: str, corpus: str, tmp_path: Path) -> None:
    asked = {"model": llama, "data": corpus, "limit": 2, "block_size": [1, 2], "shuffles": 3}
    made = plan("shuffle", hardware="cpu", **asked)
    done = ensue.run("shuffle", output=tmp_path / "run", **asked)
    assert made.items == len(done.items)
    assert made.clusters == len({item["cluster"] for item in done.items})
    assert made.tokens == done.results["tokens"]
    written = (done.folder / "items.jsonl").stat().st_size + (done.folder / "profiles.jsonl").stat().st_size
    assert made.disk["run folder"] == pytest.approx(written, rel=0.1)
    # A plan is no run: nothing of it is left.
    assert not (home() / "vectors").exists()


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("shuffle", {"block_size": [1, 2], "shuffles": 3}),
        ("insertion", {}),
        ("ordering", {"method": "neighbours"}),
    ],
)
def test_as_many_tokens_are_planned_as_go_through_the_network(
    benchmark: str, options: dict[str, Any], llama: str, corpus: str, tmp_path: Path
) -> None:
    made = plan(benchmark, model=llama, data=corpus, hardware="cpu", **options)
    model: Any = ensue.load_model(llama)
    # How the model may be run is found out once, with texts of its own.
    ensue.run(benchmark, model=model, data=corpus, output=tmp_path / "first", **options)
    fed = 0

    def count(_module: Any, given: tuple[Any, ...], _made: Any) -> None:
        nonlocal fed
        fed += given[0].numel()

    model.network.get_input_embeddings().register_forward_hook(count)
    ensue.run(benchmark, model=model, data=corpus, output=tmp_path / "second", **options)
    assert sum(cost.tally.run for cost in made.costs) == fed > 0
    assert made.notes == []


def test_what_depends_on_answers_is_said_to_be_assumed(llama: str, corpus: str) -> None:
    made = plan("ordering", model=llama, data=corpus, limit=1, hardware="cpu")
    assert any("depends on scores" in note for note in made.notes)


def test_many_documents_are_planned_from_few(llama: str, corpus: str) -> None:
    few = plan("shuffle", model=llama, data=corpus, hardware="h200", shuffles=4)
    many = plan(
        "shuffle", model=llama, data=corpus, hardware="h200", shuffles=4, documents=300, devices=8, price=2.0
    )
    assert many.times == 100
    assert many.operations == pytest.approx(100 * few.operations)
    assert many.seconds == pytest.approx(100 * few.seconds)
    assert many.wall == pytest.approx(many.start + (many.seconds + many.outside) / 8)
    assert many.money == pytest.approx(2.0 * many.device_hours)
    assert many.interval[0] < many.seconds < many.interval[1]


def test_a_gpu_compiles_for_the_whole_of_the_work_not_for_a_portion_or_the_documents_at_hand(
    llama: str, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(compile: str = "auto", **options: Any) -> Plan:
        return plan(
            "shuffle",
            model=llama,
            data=corpus,
            hardware="h200",
            shuffles=10,
            model_options={"compile": compile},
            **options,
        )

    always, never = planned("always"), planned("never")
    (cost,) = always.costs
    saved = target._SAVED * cost.tally.fed * cost.work.shape.layers * cost.work.shape.width
    assert cost.tally.fed <= cost.tally.run <= cost.tally.fed + 65_536
    assert always.start > never.start
    for name in ("_FIRST", "_LARGEST"):
        monkeypatch.setattr(f"ensue.scoring.portions.{name}", 8_000)
    monkeypatch.setattr(target, "_COMPILING", saved / 2)
    in_portions = planned()
    assert in_portions.costs[0].work.compiled
    assert in_portions.start == always.start
    (cost,) = planned("always").costs
    # Only the last row of all is padded.
    assert in_portions.costs[0].tally.run <= in_portions.costs[0].tally.fed + 65_536
    monkeypatch.setattr(counting, "SAMPLED", 30_000)
    assert planned().costs[0].work.compiled
    monkeypatch.setattr(target, "_COMPILING", saved * 20)
    assert not planned().costs[0].work.compiled
    monkeypatch.setattr(counting, "SAMPLED", 12_000_000)
    assert planned().start == never.start
    many = planned(documents=3 * 100)
    assert many.costs[0].work.compiled
    assert many.start == always.start
    (tally,) = [one.tally for one in many.costs]
    assert tally.fed == pytest.approx(100 * cost.tally.fed)
    assert tally.fed <= tally.run <= tally.fed + 65_536
    monkeypatch.setattr(target, "_COMPILING", saved / 2)
    assert not planned(documents=1).costs[0].work.compiled


def test_what_a_process_imports_once_is_not_done_for_every_document(llama: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", *(story_row(str(number)) for number in range(2)))
    few, many = (
        json.loads(
            in_process_of_its_own(
                *("plan", "squality", "--model", llama, "--data", tmp_path, "--set", "version=v1"),
                *("--set", "metrics=rouge", "--set", "max_tokens=8", "--hardware", "h200", "--json"),
                *("--documents", count),
            ).out
        )
        for count in (2, 200)
    )
    assert many["times"] == 100
    assert many["host_seconds"] < 60 * few["host_seconds"]


def test_operations_are_two_a_weight_of_the_layers_and_the_rest(llama: str, corpus: str) -> None:
    made = plan("shuffle", model=llama, data=corpus, limit=1, hardware="cpu", shuffles=2)
    (cost,) = made.costs
    tally, shape = cost.tally, cost.work.shape
    network = ensue.load_model(llama).network
    layers = sum(p.numel() for p in network.model.layers.parameters() if p.dim() == 2)
    heads = network.config.num_attention_heads * network.config.head_dim
    expected = (
        2 * layers * tally.fed
        + 4 * network.config.num_hidden_layers * heads * tally.seen
        + 2 * network.config.vocab_size * network.config.hidden_size * tally.scored
    )
    assert made.operations == pytest.approx(expected)
    assert shape.head == network.config.vocab_size * network.config.hidden_size


def test_a_model_that_is_not_here_is_planned_by_its_shape(llama: str, corpus: str) -> None:
    by_name = plan("shuffle", model=llama, data=corpus, hardware="cpu", shuffles=2)
    by_shape = plan("shuffle", shape=llama, tokenizer=llama, data=corpus, hardware="cpu", shuffles=2)
    assert by_shape.operations == by_name.operations
    guessed = plan("shuffle", shape="8B", tokenizer="4", data=corpus, hardware="h200", shuffles=2)
    assert any("4 characters a token" in note for note in guessed.notes)
    characters = guessed.costs[0].tally.characters
    assert guessed.costs[0].tally.given == pytest.approx(characters / 4, rel=0.02)


def test_an_encoder_suite_is_planned_with_its_classifiers_and_leaves_no_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "SSP" / "abs"
    folder.mkdir(parents=True)
    for split in ("train", "valid", "test"):
        lines = [f"{n % 2}\tsentence {n} is of {split} {'a' * (n % 3)}\n" for n in range(24)]
        (folder / f"{split}.txt").write_text("".join(lines))
    model = str(save_encoder(tmp_path / "encoder", max_length=32))
    made = plan("discoeval/SSP", model=model, data=tmp_path, hardware="cpu")
    (cost,) = made.costs
    assert cost.work.what == "encoded"
    assert cost.tally.texts == 72
    assert made.disk["vectors"] > 0
    assert not list((home() / "vectors").glob("*"))


def test_measuring_corrects_the_profile_by_work_that_is_done(llama: str, corpus: str) -> None:
    made = plan("shuffle", model=llama, data=corpus, hardware="cpu", shuffles=4, measure=True)
    (cost,) = made.costs
    assert cost.measured is not None
    assert cost.measured > 0
    plain = plan("shuffle", model=llama, data=corpus, hardware="cpu", shuffles=4)
    assert made.seconds == pytest.approx(plain.seconds * cost.measured)


def test_a_guess_cuts_every_character_once() -> None:
    for size in (1.0, 2.5, 4.3):
        found = GuessedTokenizer(size)("Does the text follow?", return_offsets_mapping=True)
        ends = [0, *(end for _, end in found["offset_mapping"])]
        assert [begin for begin, _ in found["offset_mapping"]] == ends[:-1]
        assert ends[-1] == 21


def test_profiles_say_where_they_are_from() -> None:
    for one in profiles().values():
        assert one.source.startswith(("measured", "derived"))
        assert one.source.startswith("derived") or (one.date and one.command)
    assert profiles()["a100"].rates["bfloat16"] < profiles()["h200"].rates["bfloat16"]
    with pytest.raises(EnsueError, match="did you mean h200"):
        find_hardware("h20")


def test_the_command_prints_tables_and_json(llama: str, corpus: str) -> None:
    words = [
        "plan",
        "shuffle",
        "--model",
        llama,
        "--data",
        corpus,
        "--hardware",
        "h200",
        "--set",
        "shuffles=2",
    ]
    shown = here(*words, "--price", "3.5")
    assert shown.code == 0
    assert "device-hours" in shown.out
    assert "money" in shown.out
    found = json.loads(here(*words, "--json").out)
    same = plan_json(plan("shuffle", model=llama, data=corpus, hardware="h200", shuffles="2"))
    assert found["operations"] == same["operations"]
    assert found["work"][0]["fed"] <= found["work"][0]["given"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shuffle", "--hardware", "abacus"], "There is no hardware abacus"),
        (["shuffle", "--shape", "9Q"], "There is no shape 9Q"),
        (
            ["shuffle", "--shape", '{"model_type": "bert"}'],
            "stands for a causal language model, and bert is none",
        ),
        (["shuffle", "--shape", "8B", "--tokenizer", "99"], "1 to 20 characters"),
        (["shuffle", "--shape", "8B", "--measure"], "leave out --measure or --shape"),
        (["shuffle", "--model", "http://127.0.0.1:1"], "served elsewhere"),
        (["shuffle", "--shape", "8B", "--model", "random"], "leave it out or --model random"),
        (["shuffle", "--model", "random", "--tokenizer", "4"], "--tokenizer goes with --shape"),
        (["shuffle", "--model", "random", "--price", "inf"], "from 0 an hour up, not inf"),
        (["superglue", "--mode", "finetune"], "trains a network"),
        (["shufle"], "did you mean"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], said: str) -> None:
    refused(
        here("plan", *words, "--hardware", "h200") if "--hardware" not in words else here("plan", *words),
        said,
    )


def test_a_baseline_that_is_trained_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    folder = write_superglue(tmp_path)
    words = ("superglue/COPA", "--data", folder, "--hardware", "cpu")
    refused(here("plan", *words, "--model", "bilstm"), "bilstm trains a network")
    assert here("plan", *words, "--model", "most-frequent").code == 0


MINE = {
    "about": '"one of mine"',
    "kind": '"cpu"',
    "memory": "16",
    "source": '"measured by me"',
    "rates": "{ float32 = 5e10 }",
    "attention": "1e11",
    "elementwise": "0.0",
    "vocabulary": "0.0",
    "written": "1e-7",
    "written_seen": "1e-10",
}


def _profile(path: Path, lines: dict[str, str], head: str = "[mine]") -> str:
    path.write_text("\n".join([head, *(f"{key} = {value}" for key, value in lines.items())]))
    return str(path)


def test_a_profile_of_ones_own_and_one_like_another(tmp_path: Path) -> None:
    mine = find_hardware(_profile(tmp_path / "a.toml", MINE))
    assert (mine.name, mine.memory, mine.rates) == ("mine", 16, {"float32": 5e10})
    like = {"like": '"h200"', "about": '"twice"', "memory": "80", "products": "2.0", "bandwidth": "1.0"}
    twice = find_hardware(_profile(tmp_path / "b.toml", like | {"source": '"derived"', "date": '"today"'}))
    assert twice.rates["float32"] == 2 * profiles()["h200"].rates["float32"]
    assert (twice.name, twice.memory, twice.date) == ("mine", 80, "today")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory": '"lots"'}, "memory is a number above 0, not 'lots'"),
        ({"memory": "-3"}, "memory is a number above 0, not -3"),
        ({"memory": "inf"}, "memory is a number above 0, not inf"),
        ({"memory": "true"}, "memory is a number above 0, not True"),
        ({"attention": "0"}, "attention is a number above 0, not 0"),
        ({"attention": "nan"}, "attention is a number above 0, not nan"),
        ({"loading": "0"}, "loading is a number above 0, not 0"),
        ({"written": "-5"}, "written is a number from 0, not -5"),
        ({"rates": "5e10"}, "of which float32 must be there"),
        ({"rates": "{ bfloat16 = 1e12 }"}, "of which float32 must be there"),
        ({"rates": "{ float32 = 0 }"}, "the rate of float32 is a number above 0, not 0"),
        ({"kind": '"tpu"'}, "kind is cuda or cpu, not 'tpu'"),
        ({"about": "5"}, "about is text, not 5"),
        ({"speed": "5"}, "speed is none of"),
        ({"like": '"h200"'}, "it has no bandwidth"),
    ],
)
def test_a_damaged_profile_is_told_in_a_sentence(changes: dict[str, str], said: str, tmp_path: Path) -> None:
    path = _profile(tmp_path / "mine.toml", MINE | changes)
    refused(here("plan", "shuffle", "--model", "random", "--hardware", path), said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have one table"),
        ("memory = 5", "must have one table"),
        ("[a]\n[b]", "must have one table"),
        ("[a", "is not TOML"),
        ("[a]", "it has no about"),
        (
            '[a]\nlike = "h300"\nabout = ""\nmemory = 1\nproducts = 1\nbandwidth = 1\nsource = ""',
            "none of h200",
        ),
    ],
)
def test_a_file_that_is_no_profile_is_told_in_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    refused(here("plan", "shuffle", "--model", "random", "--hardware", str(path)), said)
