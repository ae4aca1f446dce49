"""The pages in a real browser: from signing up to signing out, wide and narrow, light and dark, by mouse and by keys.

Every page is looked at as `visiting` says.
"""

from __future__ import annotations

import re
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from ensue.platform.service import Settings, opened
from tests.platform import filling
from tests.platform.boards import handing
from tests.platform.processes import serving
from tests.platform.web.visiting import LOOKS, SCREENSHOTS, Visit
from tests.support.command import start
from tests.support.corpus import document

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a board that takes submissions and one that is full."""
    folder = tmp_path_factory.mktemp("served")
    home = folder / "home"
    with opened(Settings(home=home)) as platform:
        handing.make_board(platform, folder / "labels", title="Small")
        with platform.database.writing() as connection:
            full = filling.add_board(connection, "full", title="Full")
            filling.add_published(connection, full)
            filling.add_many(connection, full, 120)
        platform.accounts.add("olga@example.org", "organiser", password=PASSWORD)
    return home


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    """The address of the server of that home."""
    with serving(home) as (_, url):
        yield url


@pytest.fixture(params=LOOKS)
def visit(request: pytest.FixtureRequest, chromium: Browser, address: str) -> Iterator[Visit]:
    width, scheme = request.param
    size: Any = {"width": width, "height": 900}
    context = chromium.new_context(viewport=size, color_scheme=scheme, base_url=address)
    yield Visit(context.new_page(), address, f"{width}-{scheme}")
    context.close()


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context(base_url=address)
    yield context.new_page()
    context.close()


def broken(path: Path) -> Path:
    """Write predictions of which one file has a line that is none."""
    whole = handing.predictions(path)
    with zipfile.ZipFile(whole) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["BoolQ.jsonl"] = b'{"idx": 0, "label": "maybe"}\n' + files["BoolQ.jsonl"].split(b"\n", 1)[1]
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole


def fill_in(page: Page, system: str) -> None:
    page.get_by_label("Name", exact=True).fill(system)
    page.get_by_label("Description").fill("It says what is said most.")
    page.get_by_label("Number of parameters").fill("3")
    page.get_by_label("Training data").fill("None.")
    page.get_by_label("Link", exact=True).fill("https://example.org/majority")


def sign_up(page: Page, name: str) -> None:
    page.goto("/sign-up")
    page.get_by_label("E-mail address").fill(f"{name}@example.org")
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_from_signing_up_to_signing_out(visit: Visit, tmp_path: Path) -> None:
    page, system = visit.page, f"Majority {visit.look}"
    page.goto("/")
    visit.check("home")
    sign_up(page, f"walk-{visit.look}")
    page.get_by_role("link", name="Small").click()
    page.get_by_role("link", name="Submit predictions").click()
    visit.check("submit")

    # A file that is none of the board's is refused before it is sent.
    page.get_by_label("File (.zip)").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"}
    )
    expect(page.get_by_role("alert")).to_contain_text("notes.txt is no .zip file")
    page.get_by_label("File (.zip)").set_input_files(broken(tmp_path / "broken.zip"))
    expect(page.get_by_role("alert")).to_be_hidden()
    fill_in(page, system)
    page.get_by_role("button", name="Check and submit").click()
    problems = page.get_by_role("list", name="Problems of the file").get_by_role("listitem")
    expect(problems.first).to_contain_text("BoolQ.jsonl, line 1:", timeout=60_000)
    visit.check("problems")
    expect(page.get_by_label("Name", exact=True)).to_have_value(system)

    page.get_by_label("File (.zip)").set_input_files(handing.predictions(tmp_path / "predictions.zip"))
    page.get_by_role("button", name="Check and submit").click()
    page.wait_for_url("**/submissions/*", timeout=60_000)
    expect(page.get_by_text("You alone see it until you publish it.")).to_be_visible(timeout=60_000)
    visit.check("graded")

    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("It is published and on the board.")).to_be_visible()
    visit.check("published")
    own = page.url
    page.get_by_role("link", name="My submissions").click()
    visit.check("mine")
    page.get_by_role("link", name="Small").first.click()
    expect(page.get_by_role("link", name=system)).to_be_visible()
    visit.check("board")
    page.get_by_role("link", name="Diagnostics").click()
    expect(page.get_by_role("heading", name="Small")).to_be_visible()
    visit.check("diagnostics")
    page.get_by_role("link", name="Ada").click()
    visit.check("account")

    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("link", name="Sign in").first).to_be_visible()
    page.goto(own)
    expect(page.get_by_role("heading", name=system)).to_be_visible()
    expect(page.get_by_role("button", name="Withdraw")).to_have_count(0)
    visit.check("public")


def test_a_full_board_is_sorted_filtered_and_opened_without_loading_again(visit: Visit) -> None:
    page = visit.page
    page.goto("/boards/full")
    page.evaluate("window.stayed = true")
    expect(page.get_by_role("heading", name="Best score over time")).to_be_visible()
    visit.look_at("full")
    head = page.get_by_role("columnheader").filter(has=page.locator("[data-key='WSC.accuracy']"))
    button = head.get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(button).to_be_focused()
    values = [
        float(text) for text in page.locator("tbody tr:not(.more) td:nth-child(14)").all_inner_texts()[:20]
    ]
    assert values == sorted(values, reverse=True)
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")

    page.get_by_label("Filter systems").press_sequentially("bert")
    expect(page.get_by_role("status").filter(has_text="systems")).to_have_text("2 of 126 systems")
    assert page.url.endswith("q=bert") or "q=bert" in page.url
    more = page.get_by_role("button", name="More about BERT++")
    more.focus()
    page.keyboard.press("Space")
    expect(more).to_have_attribute("aria-expanded", "true")
    expect(page.locator("tr.more:visible")).to_have_count(1)
    page.get_by_label("95 % intervals").check()
    visit.check("filtered")
    page.get_by_label("Filter systems").fill("")
    expect(page.get_by_role("status").filter(has_text="systems")).to_have_text("126 systems")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("101–126 of 126")).to_be_visible()
    assert page.evaluate("window.stayed") is True

    page.goto("/boards/full/diagnostics?part=Logic")
    visit.look_at("heat")
    page.goto("/boards/full/diagnostics?part=Logic&q=xl+1")
    visit.check("few")
    page.goto("/boards/full?date=2026-01-20&q=xl")
    expect(page.get_by_text("As it stood at the end of 20 Jan 2026")).to_be_visible()
    visit.check("dated")
    page.goto("/boards/none")
    visit.check("missing")


def test_nothing_moves_while_a_board_loads(page: Page) -> None:
    page.goto("/boards/full")
    page.wait_for_load_state("networkidle")
    moved = page.evaluate(
        """() => new Promise((done) => {
            let sum = 0;
            new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
                .observe({ type: "layout-shift", buffered: true });
            setTimeout(() => done(sum), 300);
        })"""
    )
    assert moved < 0.02


def test_the_first_columns_stay_when_a_table_is_scrolled(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto("/boards/full")
    cell = page.locator("tbody th.system").first
    before = cell.bounding_box()
    page.locator(".scroll").first.evaluate("element => element.scrollLeft = 300")
    after = cell.bounding_box()
    assert before is not None
    assert after is not None
    assert before["x"] == pytest.approx(after["x"], abs=0.5)
    assert page.locator("tbody td.score").first.evaluate("element => element.getBoundingClientRect().x") < 0


def test_keys_alone_lead_to_the_content_and_a_theme_is_kept(page: Page) -> None:
    page.goto("/boards/full")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    theme = page.get_by_role("button", name="Theme")
    theme.focus()
    page.keyboard.press("Enter")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    expect(theme).to_have_text("Theme: dark")


def test_without_scripts_everything_works_by_loading_pages(
    chromium: Browser, address: str, tmp_path: Path
) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/boards/full")
    page.locator("[data-key='RTE.accuracy']").click()
    assert "sort=-RTE.accuracy" in page.url
    page.get_by_label("Filter systems").fill("human")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("1 of 126 systems")).to_be_visible()
    sign_up(page, "plain")
    page.goto("/boards/small/submit")
    fill_in(page, "Plain")
    page.get_by_label("File (.zip)").set_input_files(broken(tmp_path / "broken.zip"))
    page.get_by_role("button", name="Check and submit").click()
    expect(page.get_by_role("listitem").filter(has_text="BoolQ.jsonl, line 1:")).to_be_visible(timeout=60_000)
    context.close()


def test_an_organiser_makes_a_board_and_replaces_its_labels(visit: Visit, tmp_path: Path) -> None:
    page, name = visit.page, f"harbour-{visit.look}"
    folder = tmp_path / "harbour"
    folder.mkdir()
    (folder / "board.toml").write_text(
        'name = "Harbour"\nsplit = "test"\n[tasks.fate]\nlabels = "{split}.csv"\nmetrics = ["accuracy"]\n'
    )
    (folder / "test.csv").write_text("id,label\n1,sunk\n2,home\n2,home\n")
    page.goto("/sign-in")
    page.get_by_label("E-mail address").fill("olga@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Organise").click()
    page.get_by_role("link", name="New board").click()
    visit.check("organise-new")
    page.get_by_label("Name in addresses").fill(name)
    page.get_by_label("A zip").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hello"}
    )
    expect(page.get_by_role("alert")).to_contain_text("notes.txt is no .zip file")
    page.get_by_label("Or a folder").set_input_files(folder)
    expect(page.get_by_role("alert")).to_be_hidden()
    page.get_by_role("button", name="Make the board").click()
    expect(page.get_by_role("alert")).to_contain_text("test.csv, line 4:", timeout=60_000)
    visit.check("organise-problem")
    (folder / "test.csv").write_text("id,label\n1,sunk\n2,home\n")
    page.get_by_label("Or a folder").set_input_files(folder)
    page.get_by_role("button", name="Make the board").click()
    page.wait_for_url(f"**/organise/{name}?done=made", timeout=60_000)
    expect(page.get_by_role("status").first).to_have_text("The board is made and takes submissions.")
    visit.check("organise-board")

    (folder / "test.csv").write_text("id,label\n1,home\n2,sunk\n")
    page.get_by_label("Or a folder").set_input_files(folder)
    page.get_by_role("button", name="Replace the labels").click()
    page.wait_for_url(f"**/organise/{name}?done=labels", timeout=60_000)
    page.get_by_label("listed among the boards").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("unlisted", exact=True)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export everything").click()
    assert download.value.suggested_filename.startswith(name)
    page.get_by_role("link", name="Show the board").click()
    expect(page.locator("#regraded")).to_contain_text("(version 2): 0 systems graded again")
    page.goto("/organise")
    expect(page.get_by_role("link", name="Harbour").first).to_be_visible()
    visit.check("organise")
    page.get_by_role("link", name="Invitations").click()
    page.get_by_label("Note to yourself").fill("for the reading group")
    page.get_by_role("button", name="Make an invitation").click()
    expect(page.get_by_text("It is shown this once")).to_be_visible()
    visit.check("invitations")


def test_the_chart_of_a_task_is_chosen_by_a_link(page: Page) -> None:
    page.goto("/boards/full")
    page.get_by_label("Filter systems").press_sequentially("xl")
    expect(page).to_have_url(re.compile("q=xl"))
    link = page.get_by_role("link", name="RTE acc.")
    expect(link).to_have_attribute("href", "?q=xl&chart=RTE.accuracy#over-time")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Best RTE acc. over time")).to_be_in_viewport()
    drawn = page.locator(".chart svg.wide")
    expect(drawn).to_have_attribute("aria-label", re.compile("Best RTE acc. over time: .*; human 0.936"))
    assert "q=xl" in page.url


def test_a_text_is_tried_shown_and_deleted(visit: Visit, home: Path) -> None:
    page, text = visit.page, " ".join(document(3, 6))
    page.goto("/")
    page.get_by_role("link", name="Try it").click()
    expect(page.get_by_role("heading", name="No worker is connected")).to_be_visible()
    visit.check("try-nobody")
    with start("worker", "--model", "unigram", "--home", home, "--no-qags", "--json") as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline()
            page.reload()
            page.get_by_label("Text").fill(text)
            visit.check("try")
            # The worker says nothing for a while, then goes on.
            worker.send_signal(signal.SIGSTOP)
            page.get_by_role("button", name="Read it").click()
            expect(page.get_by_role("status")).to_have_text("It is being read now.")
            visit.check("try-waiting")
            worker.send_signal(signal.SIGCONT)
            expect(page.get_by_role("link", name="Try another")).to_be_visible(timeout=60_000)
            expect(page.locator(".s")).to_have_count(6)
            page.get_by_text("Sentence by sentence", exact=True).click()
            visit.check("tried")
            here = page.url
            page.get_by_role("button", name="Delete it now").click()
            expect(page).not_to_have_url(here)
            page.goto(here)
            expect(page.get_by_role("heading", name="It is gone")).to_be_visible()
            visit.check("try-gone")
        finally:
            worker.send_signal(signal.SIGCONT)
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=60)


def test_an_organiser_makes_projects_of_several_kinds(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto("/sign-in?next=/projects/new")
    page.get_by_label("E-mail address").fill("olga@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="New project")).to_be_visible()
    visit.check("project-kinds")
    page.get_by_role("link", name="consistency", exact=True).click()
    visit.check("project-new-consistency")
    page.screenshot(path=SCREENSHOTS / f"project-new-whole-{visit.look}.png", full_page=True)

    # What is wrong is said beside the form, which stays as it was filled in.
    name = f"judged-{visit.look}"
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Labels").fill("two")
    row = '{"article": "It rained all day. The ferry stayed in port.", "summary": "It rained."}\n'
    summaries = tmp_path / "summaries.jsonl"
    summaries.write_text(row)
    page.get_by_label("Data").set_input_files(summaries)
    page.get_by_role("button", name="Make the project").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "Invalid labels=two: expected a whole number from 1 to 1,000."
    )
    visit.check("project-new-problem")
    assert page.get_by_label("Name", exact=True).input_value() == name
    page.get_by_label("Labels").fill("2")
    page.get_by_role("button", name="Make the project").click()
    page.wait_for_url(f"**/projects/{name}?done=made", timeout=60_000)
    expect(page.get_by_text("0 of 2 answers")).to_be_visible()
    visit.check("project-made")

    # A zip, a choice among a few, and no data at all; the folder of a suite as the browser sends it.
    page.goto("/projects/new/shuffle")
    page.get_by_label("Name", exact=True).fill(f"shuffled-{visit.look}")
    page.get_by_label("Split").select_option("lines")
    with zipfile.ZipFile(tmp_path / "texts.zip", "w") as archive:
        for number in range(9):
            archive.writestr(f"texts/{number}.txt", "".join(f"Line {n} of {number}.\n" for n in range(8)))
    page.get_by_label("Data").set_input_files(tmp_path / "texts.zip")
    page.get_by_role("button", name="Make the project").click()
    page.wait_for_url(f"**/projects/shuffled-{visit.look}?done=made", timeout=60_000)
    expect(page.get_by_text("0 of 9 answers")).to_be_visible()
    page.goto("/projects/new/classification")
    page.get_by_label("Name", exact=True).fill(f"told-{visit.look}")
    page.get_by_label("Task").select_option("superglue/RTE")
    (tmp_path / "superglue" / "RTE").mkdir(parents=True)
    line = '{"premise": "It rained.", "hypothesis": "It was wet.", "label": "entailment", "idx": 0}\n'
    (tmp_path / "superglue" / "RTE" / "val.jsonl").write_text(line)
    (tmp_path / "superglue" / "RTE" / "train.jsonl").write_text(line)
    page.get_by_label("Or a folder").set_input_files(tmp_path / "superglue")
    page.get_by_role("button", name="Make the project").click()
    page.wait_for_url(f"**/projects/told-{visit.look}?done=made", timeout=60_000)
    expect(page.get_by_text("0 of 5 answers")).to_be_visible()
