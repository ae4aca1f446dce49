"""Annotation in a real browser: every type of field by keys and by mouse, what is saved and what survives."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from ensue.benchmarks.people.form import Field, Form, options
from ensue.platform.service import Settings, opened
from tests.platform.processes import serving
from tests.platform.web.annotated import FORMS, HEBREW, SENTENCES, STORY, WHEN, items, make
from tests.platform.web.browser import PASSWORD
from tests.platform.web.visiting import LOOKS, Visit

Act = Callable[[Page], None]
PROLIFIC = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


class Served:
    """A server with projects, and their links by name."""

    def __init__(self) -> None:
        self.address = ""
        self.paths: dict[str, str] = {}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("annotated") / "home"


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    found = Served()
    with opened(Settings(home=home)) as platform:
        projects = {name: make(platform, name, items(form, 1), labels=99) for name, form in FORMS.items()}
        many = [(str(place), f"Sentence {place}.") for place in range(1, 13)]
        which = Field("answer", "choice", "Which?", options(*many, ("none", "None: every sentence belongs")))
        projects["none"] = make(platform, "none", items(Form((), (which,)), 1), labels=99)
        back = {"completion_url": "https://example.org/done"}
        projects["returned"] = make(platform, "returned", items(FORMS["preference"], 1), labels=99, **back)
        projects["hebrew"] = make(platform, "hebrew", items(HEBREW, 1), labels=99)
        projects["when"] = make(platform, "when", items(WHEN, 3), labels=99)
        gold = {"gold": {"label": "y"}, "words": "Playing is not sleeping."}
        first = [
            one for phase in ("training", "qualification") for one in items(WHEN, 1, phase=phase, **gold)
        ]
        projects["phases"] = make(platform, "phases", [*first, *items(WHEN, 2)], labels=9, bar=0.5)
        # A lease of a second or two, so that it can be lost while a test looks on.
        projects["lost"] = make(platform, "lost", items(FORMS["choice"], 1), labels=1, lease_minutes=0.03)
        owner = platform.accounts.add("owner@example.org", "organiser")
        platform.accounts.set_password(owner.id, PASSWORD)
        for look in LOOKS:
            name = f"judged-{look.id}"
            five = items(FORMS["choice"], 5)
            facts: dict[str, Any] = {"labels": 2, "control_rate": 0.0, "completion_code": "DONE"}
            projects[name] = make(platform, name, five, by=owner.id, **facts)
        found.paths = {name: project.path for name, project in projects.items()}
    with serving(home) as (_, url):
        found.address = url
        yield found


class Worker:
    """Somebody at work on a project in a browser of their own."""

    def __init__(self, browser: Browser, address: str, path: str, look: Any = (1280, "light")) -> None:
        size: Any = {"width": look[0], "height": 800}
        self.context: BrowserContext = browser.new_context(
            base_url=address, viewport=size, color_scheme=look[1]
        )
        self.path, self.name = path, path.split("?")[0].removeprefix("/annotate/")
        self.page = self.context.new_page()
        self.visit = Visit(self.page, address, f"{look[0]}-{look[1]}")

    def enter(self, id: str = "") -> Page:
        page = self.page
        page.goto(self.path + (f"&PROLIFIC_PID={id}&STUDY_ID=s&SESSION_ID=x" if id else ""))
        page.get_by_label("I have read this").check()
        page.get_by_role("button", name="Begin").click()
        self.close_instructions()
        expect(page.locator("#stage > *").first).to_be_visible()
        return page

    def close_instructions(self) -> None:
        dialog = self.page.get_by_role("dialog", name="Instructions")
        expect(dialog).to_be_visible()
        self.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()

    def get(self, path: str) -> Any:
        answer = self.page.request.get(f"/api/v1/{path}")
        assert answer.ok, answer.text()
        return answer.json()

    def saved(self, place: int = 1) -> Any:
        """What the server has of an item."""
        listed = self.get(f"projects/{self.name}/assignments")
        (id,) = (one["id"] for one in listed if one["place"] == place)
        return self.get(f"assignments/{id}")["answer"]

    def wait_saved(self) -> None:
        expect(self.page.locator("#saved")).to_have_text("Saved")

    def submit(self) -> None:
        self.page.get_by_role("button", name="Submit").click()


@pytest.fixture
def work(chromium: Browser, served: Served) -> Iterator[Callable[..., Worker]]:
    made: list[Worker] = []

    def begin(name: str, look: Any = (1280, "light")) -> Worker:
        made.append(Worker(chromium, served.address, served.paths[name], look))
        return made[-1]

    yield begin
    for one in made:
        assert [words for words in one.visit.complaints if "net::" not in words] == []
        one.context.close()


# Every type of field


def _press(*keys: str) -> Act:
    def act(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    return act


def _click(*names: str, role: Any = "radio") -> Act:
    def act(page: Page) -> None:
        for name in names:
            page.get_by_role(role, name=name, exact=True).click()

    return act


def _tab_to(page: Page, selector: str) -> None:
    """Press Tab until the first of some elements is reached."""
    reached = f"document.activeElement === document.querySelector({selector!r})"
    for _ in range(25):
        if page.evaluate(reached):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by keys")


def _keys_at(selector: str, *keys: str) -> Act:
    def act(page: Page) -> None:
        _tab_to(page, selector)
        _press(*keys)(page)

    return act


def _write(page: Page) -> None:
    _tab_to(page, "textarea")
    page.keyboard.type("She counts the boats.")


def _scales_by_keys(page: Page) -> None:
    page.keyboard.press("4")
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowRight")


def _scales_by_mouse(page: Page) -> None:
    page.get_by_role("radio", name="2", exact=True).click()
    page.get_by_role("spinbutton").fill("88")


def _spans_by_mouse(page: Page) -> None:
    page.get_by_role("button", name="Remove the mark").click()
    # A double click selects a word; the label is pressed after it.
    box = page.evaluate(
        """() => {
            const text = document.querySelector(".text");
            const node = document.createTreeWalker(text, NodeFilter.SHOW_TEXT).nextNode();
            const at = node.data.indexOf("Nobody");
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 6);
            const box = range.getBoundingClientRect();
            return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
        }"""
    )
    page.mouse.dblclick(box["x"], box["y"])
    page.get_by_role("button", name="Typo").click()
    page.get_by_label("Note on").fill("who?")


def _order_by_mouse(page: Page) -> None:
    handle = page.get_by_role("button", name=f"Move: {SENTENCES[2]}")
    target = page.get_by_role("button", name=f"Move: {SENTENCES[0]}")
    start, end = handle.bounding_box(), target.bounding_box()
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(start["x"] + 8, (start["y"] + end["y"]) / 2)
    page.mouse.move(end["x"] + 8, end["y"] - 12, steps=4)
    page.mouse.up()


def _sentences_by_mouse(page: Page) -> None:
    page.get_by_role("button", name=SENTENCES[1]).click()
    page.get_by_role("radio", name="No", exact=True).click()
    page.get_by_label("Why? (optional)").fill("It says three.")


NOBODY = STORY.index("Nobody")
ANSWERS: dict[str, tuple[Act, Any, Act, Any]] = {
    "choice": (_press("2"), "n", _click("Perhaps"), "?"),
    "choices": (_press("3", "1"), ["a", "c"], _click("Lamps", "Tax", role="checkbox"), ["a", "b"]),
    "text": (
        _write,
        "She counts the boats.",
        lambda page: page.get_by_label("What happens?").fill("She counts the boats 🏮 twice."),
        "She counts the boats 🏮 twice.",
    ),
    "spans": (
        _keys_at(".text", *["Control+ArrowRight"] * 2, *["Control+Shift+ArrowRight"] * 2, "2"),
        [{"start": 12, "end": 21, "label": "Error", "note": ""}],
        _spans_by_mouse,
        [{"start": NOBODY, "end": NOBODY + 6, "label": "Typo", "note": "who?"}],
    ),
    "order": (
        _keys_at(".handle", "ArrowDown"),
        ["b", "a", "c"],
        _order_by_mouse,
        ["b", "c", "a"],
    ),
    "place": (
        _keys_at(".gap input", "Space", "ArrowDown", "ArrowDown"),
        2,
        _click("Before the first sentence"),
        0,
    ),
    "rank": (
        _press("1", "2", "2"),
        {"a": 1, "b": 2, "c": 2},
        lambda page: (
            page.get_by_role("radiogroup", name=SENTENCES[2]).get_by_role("radio", name="Place 3").click()
        ),
        {"a": 1, "b": 2, "c": 3},
    ),
    "preference": (_press("ArrowRight"), "right", _click("Text A"), "left"),
    "sentences": (
        _press("1", "Enter", "1", "Enter", "2"),
        [{"value": True, "reason": ""}, {"value": True, "reason": ""}, {"value": False, "reason": ""}],
        _sentences_by_mouse,
        [
            {"value": True, "reason": ""},
            {"value": False, "reason": "It says three."},
            {"value": False, "reason": ""},
        ],
    ),
}


@pytest.mark.parametrize("type", sorted(ANSWERS))
def test_a_field_is_answered_by_keys_and_by_mouse(work: Callable[..., Worker], type: str) -> None:
    worker = work(type)
    page = worker.enter()
    by_keys, first, by_mouse, second = ANSWERS[type]
    expect(page.locator(".question")).to_be_visible()
    by_keys(page)
    worker.wait_saved()
    assert worker.saved() == {**worker.saved(), "values": {"answer": first}, "final": False}
    by_mouse(page)
    expect(page.locator("#saved")).not_to_have_text("Saved")
    worker.wait_saved()
    assert worker.saved()["values"] == {"answer": second}
    # What is there is there again after loading the page.
    page.reload()
    expect(page.locator(".question")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="You have done everything")).to_be_visible()
    assert worker.saved() == {**worker.saved(), "values": {"answer": second}, "final": True}


def test_scales_are_answered_by_keys_and_by_mouse(work: Callable[..., Worker]) -> None:
    worker = work("scale")
    page = worker.enter()
    expect(page.locator(".question").first).to_be_visible()
    worker.submit()
    expect(page.get_by_text("This is not answered yet.")).to_have_count(2)
    page.evaluate("document.activeElement.blur()")
    _scales_by_keys(page)
    worker.wait_saved()
    assert worker.saved()["values"] == {"five": 4, "hundred": 54}
    _scales_by_mouse(page)
    expect(page.locator("#saved")).not_to_have_text("Saved")
    worker.wait_saved()
    assert worker.saved()["values"] == {"five": 2, "hundred": 88}
    page.get_by_role("spinbutton").fill("101")
    worker.submit()
    expect(page.get_by_text("It is a number from 1 to 100.")).to_be_visible()
    page.get_by_role("spinbutton").fill("100")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="You have done everything")).to_be_visible()


def test_the_page_goes_back_by_itself_to_where_somebody_came_from(work: Callable[..., Worker]) -> None:
    worker = work("returned")
    worker.context.route("https://example.org/**", lambda route: route.fulfill(body="Welcome back."))
    page = worker.page
    page.clock.install()
    worker.enter()
    expect(page.locator(".question")).to_be_visible()
    page.keyboard.press("1")
    worker.submit()
    expect(page.locator("#going")).to_contain_text("by itself in 8 seconds")
    link = page.get_by_role("link", name="Go back to where you came from")
    expect(link).to_have_attribute("href", "https://example.org/done")
    page.clock.run_for(7000)
    assert page.url.startswith(worker.visit.address)
    page.get_by_role("button", name="Stay here").click()
    expect(page.locator("#going")).to_contain_text("stays as it is")
    page.clock.run_for(60_000)
    assert page.url.startswith(worker.visit.address)
    page.reload()  # whoever comes again is told again
    expect(page.locator("#going")).to_contain_text("by itself")
    page.clock.run_for(9000)
    page.wait_for_url("https://example.org/done")
    worker.visit.complaints.remove("asked https://example.org/done")


def test_none_of_many_is_reached_by_the_key_0(work: Callable[..., Worker]) -> None:
    worker = work("none")
    page = worker.enter()
    expect(page.locator(".question")).to_be_visible()
    page.keyboard.press("9")
    expect(page.get_by_role("radio", name="Sentence 9.")).to_be_checked()
    page.keyboard.press("0")
    expect(page.get_by_role("radio", name="None: every sentence belongs")).to_be_checked()
    expect(page.locator("label.option kbd")).to_have_text([*"123456789", "0"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You have done everything")).to_be_visible()
    assert worker.saved()["values"] == {"answer": "none"}


def test_words_are_counted_and_a_text_that_is_too_short_is_not_handed_in(work: Callable[..., Worker]) -> None:
    worker = work("text")
    page = worker.enter()
    area = page.get_by_label("What happens?")
    area.fill("Two words")
    expect(page.locator(".count")).to_have_text("2 words; 3 to 12 are asked for")
    expect(page.locator(".count")).to_have_class(re.compile("off"))
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Write at least 3 words; there are 2.")).to_be_visible()
    # Keys are for writing here, and control characters are not sent.
    area.press_sequentially(" 1 ?\x07 three")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="You have done everything")).to_be_visible()
    assert worker.saved()["values"] == {"answer": "Two words 1 ? three"}


def test_a_question_is_asked_only_where_it_depends_on_what_was_said(work: Callable[..., Worker]) -> None:
    worker = work("when")
    page = worker.enter()
    why, sure = page.get_by_label("Why not?"), page.get_by_label("Are you sure?")
    expect(page.locator("mark.fixed")).to_have_text("man")
    # What looks like HTML is shown as it is written.
    expect(page.get_by_text("<img src=x onerror=alert(1)> is text.")).to_be_visible()
    expect(why).to_be_hidden()
    page.keyboard.press("2")
    expect(why).to_be_visible()
    why.fill("Nobody plays asleep")
    expect(sure).to_be_visible()
    page.get_by_role("radio", name="Yes").check()
    expect(why).to_be_hidden()
    expect(sure).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page.locator("#far")).to_have_text("1 of 3 done")
    assert worker.saved()["values"] == {"label": "y"}


@pytest.fixture
def alone(chromium: Browser, tmp_path: Path, database_url: str) -> Iterator[Callable[[str, Form], Worker]]:
    """Begin a project of three items on a server of its own, on each database."""
    home = tmp_path / "home"
    with ExitStack() as stack:

        def begin(name: str, form: Form) -> Worker:
            with opened(Settings(home=home, database=database_url)) as platform:
                path = make(platform, name, items(form, 3), labels=9).path
            _, address = stack.enter_context(serving(home, "--database", database_url))
            worker = Worker(chromium, address, path)
            stack.callback(worker.context.close)
            return worker

        yield begin


def test_a_shuffle_test_by_keys_alone(alone: Callable[[str, Form], Worker]) -> None:
    worker = alone("shuffled", FORMS["preference"])
    page = worker.page
    page.goto(worker.path)
    expect(page.get_by_role("button", name="Begin")).to_be_visible()
    _tab_to(page, "#agreed")
    _press("Space", "Tab", "Enter")(page)
    worker.close_instructions()
    expect(page.locator(".question")).to_be_visible()
    _press("?")(page)
    expect(page.get_by_role("dialog", name="Instructions")).to_be_visible()
    _press("Escape", "1", "Enter")(page)
    expect(page.locator("#far")).to_have_text("1 of 3 done")
    _press("2", "ArrowLeft", "Enter")(page)
    expect(page.locator("#far")).to_have_text("2 of 3 done")
    _press("ArrowRight", "Enter")(page)
    expect(page.locator("#code")).to_have_text("DONE-shuffled")
    assert [worker.saved(place)["values"]["answer"] for place in (1, 2, 3)] == ["left", "left", "right"]
    page.get_by_role("button", name="Back to your last answer").press("Enter")
    expect(page.get_by_text("You have handed this in already")).to_be_visible()
    _press("1", "Enter")(page)
    expect(page.locator("#code")).to_be_visible()
    assert worker.saved(3)["values"]["answer"] == "left"
    assert worker.visit.complaints == []


# What survives


def test_what_was_answered_can_be_corrected(work: Callable[..., Worker]) -> None:
    worker = work("when")
    page = worker.enter()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.locator("#far")).to_have_text("1 of 3 done")
    page.get_by_role("radio", name="Yes").check()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_text("You have handed this in already")).to_be_visible()
    expect(page.get_by_role("radio", name="Yes")).to_be_checked()
    page.get_by_role("radio", name="No").check()
    # A correction is one answer: until it is whole, what was handed in stands, also after loading the page.
    page.reload()
    expect(page.get_by_role("radio", name="No")).to_be_checked()
    assert worker.saved(1)["values"] == {"label": "y"}
    page.get_by_label("Why not?").fill("They differ.")
    page.get_by_role("button", name="Save the correction").click()
    expect(page.get_by_text("You have handed this in already")).to_be_hidden()
    assert worker.saved(1) == {
        **worker.saved(1),
        "values": {"label": "n", "why": "They differ."},
        "final": True,
    }
    # The item that was left is as it was.
    expect(page.get_by_role("radio", name="Yes")).to_be_checked()


def test_of_two_pages_of_one_person_the_one_that_hands_in_last_is_heard(work: Callable[..., Worker]) -> None:
    worker = work("when")
    page = worker.enter()
    expect(page.locator(".question").first).to_be_visible()
    other = worker.context.new_page()
    other.goto(f"/annotate/{worker.name}/work")
    expect(other.locator(".question").first).to_be_visible()
    for key, label in (("2", "n"), ("1", "y"), ("2", "n")):
        with page.expect_response(re.compile("/answer$")):
            page.keyboard.press(key)
        assert worker.saved()["values"]["label"] == label
    # The other page has sent nothing yet.
    other.keyboard.press("1")
    other.keyboard.press("Enter")
    expect(other.locator("#far")).to_have_text("1 of 3 done")
    assert worker.saved() == {**worker.saved(), "values": {"label": "y"}, "final": True}
    # Both correct it, each as often as the other.
    for one in (page, other):
        one.goto(f"/annotate/{worker.name}/work#{worker.get(f'projects/{worker.name}/assignments')[0]['id']}")
        one.reload()
        expect(one.get_by_text("You have handed this in already")).to_be_visible()
    for one, words in ((page, "They differ."), (other, "They differ much.")):
        one.get_by_role("radio", name="No").check()
        one.get_by_label("Why not?").fill(words)
        one.get_by_role("button", name="Save the correction").click()
        expect(one.get_by_text("You have handed this in already")).to_be_hidden()
        assert worker.saved()["values"] == {"label": "n", "why": words}


def test_a_page_whose_clock_is_behind_is_heard_too(work: Callable[..., Worker]) -> None:
    worker = work("when")
    page = worker.enter()
    expect(page.locator(".question").first).to_be_visible()
    other = worker.context.new_page()
    other.add_init_script("Date.now = () => 1000")
    other.goto(f"/annotate/{worker.name}/work")
    expect(other.locator(".question").first).to_be_visible()
    with page.expect_response(re.compile("/answer$")):
        page.keyboard.press("1")
    other.keyboard.press("1")
    other.keyboard.press("Enter")
    expect(other.locator("#far")).to_have_text("1 of 3 done")
    assert worker.saved() == {**worker.saved(), "values": {"label": "y"}, "final": True}


def test_a_while_without_connection_loses_nothing(alone: Callable[[str, Form], Worker]) -> None:
    worker = alone("when", WHEN)
    page = worker.enter()
    expect(page.locator(".question").first).to_be_visible()
    worker.context.set_offline(True)
    page.keyboard.press("2")
    expect(page.get_by_text("No connection to the server at the moment.")).to_be_visible()
    expect(page.locator("#notice")).to_contain_text("you can go on")
    page.get_by_label("Why not?").fill("They differ.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#saved")).to_have_text("Kept here, not sent yet")
    # Nothing more can be done on this item: the next one is not here.
    expect(page.locator("#notice")).to_contain_text("the next one comes then")
    worker.context.set_offline(False)
    expect(page.locator("#far")).to_have_text("1 of 3 done")
    expect(page.get_by_text("No connection to the server at the moment.")).to_be_hidden()
    assert worker.saved(1) == {
        **worker.saved(1),
        "values": {"label": "n", "why": "They differ."},
        "final": True,
    }
    assert [words for words in worker.visit.complaints if "net::" not in words] == []


def test_a_server_killed_while_somebody_types_loses_nothing(
    chromium: Browser, tmp_path: Path, database_url: str
) -> None:
    home, database = tmp_path / "home", ("--database", database_url)
    with opened(Settings(home=home, database=database_url)) as platform:
        path = make(platform, "typed", items(FORMS["text"], 1)).path
    with serving(home, *database) as (process, address):
        worker = Worker(chromium, address, path)
        area = worker.enter().get_by_label("What happens?")
        area.press_sequentially("One two three")
        worker.wait_saved()
        area.press_sequentially(" four")
        process.send_signal(signal.SIGKILL)
        process.wait()
    area.press_sequentially(" five")
    expect(worker.page.get_by_text("No connection to the server at the moment.")).to_be_visible()
    port = address.rpartition(":")[2]
    with serving(home, *database, "--port", port) as (process, again):
        assert again == address
        worker.wait_saved()
        assert worker.saved()["values"] == {"answer": "One two three four five"}
        process.send_signal(signal.SIGKILL)
        process.wait()
    # Now the page goes away, too, with what nobody has but the browser.
    area.press_sequentially(" six")
    expect(worker.page.locator("#saved")).to_have_text("Kept here, not sent yet")
    worker.page.close()
    with serving(home, *database, "--port", port):
        worker.page = worker.context.new_page()
        worker.page.goto(f"/annotate/{worker.name}/work")
        expect(worker.page.get_by_label("What happens?")).to_have_value("One two three four five six")
        worker.page.keyboard.press("Control+Enter")
        expect(worker.page.locator("#code")).to_have_text("DONE-typed")
        assert worker.saved()["values"] == {"answer": "One two three four five six"}
        worker.context.close()


def test_an_item_that_went_to_somebody_else_is_told(work: Callable[..., Worker]) -> None:
    late, other = work("lost"), work("lost")
    late.enter("late")
    expect(late.page.locator(".question")).to_be_visible()
    # Until the lease of the first is over, there is nothing for the second, however often it asks at once.
    page = other.enter("other")
    with page.expect_response("**/assignments"):
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.url) if one.method == "POST" else None)
        page.get_by_role("button", name="Look again").dblclick()
    page.wait_for_load_state("networkidle")
    assert len([url for url in asked if url.endswith("/assignments")]) == 1
    for _ in range(30):
        if page.locator(".question").is_visible():
            break
        page.wait_for_timeout(300)
        if page.get_by_role("button", name="Look again").is_visible():
            page.get_by_role("button", name="Look again").click()
        else:
            page.reload()
    # The second hands it in, for its own lease may be over by the time the first goes on.
    page.keyboard.press("1")
    other.submit()
    expect(page.locator(".question")).to_be_hidden()
    late.page.keyboard.press("1")
    expect(late.page.get_by_role("heading", name="This item has gone back")).to_be_visible()
    late.page.get_by_role("button", name="Go on with the next").click()


def test_training_is_told_and_whoever_does_not_qualify_is_thanked(work: Callable[..., Worker]) -> None:
    worker = work("phases")
    page = worker.enter()
    expect(page.locator("#phase")).to_have_text("Training")
    page.keyboard.press("2")
    page.get_by_label("Why not?").fill("No idea.")
    page.keyboard.press("Control+Enter")
    feedback = page.locator(".feedback")
    expect(feedback).to_contain_text("That is not what was expected.")
    expect(feedback).to_contain_text("Does it follow?Yes")
    expect(feedback).to_contain_text("Playing is not sleeping.")
    # It is told beneath what was answered, however high the window is.
    answered, told = page.locator(".fields").bounding_box(), feedback.bounding_box()
    assert answered is not None
    assert told is not None
    assert 0 <= told["y"] - answered["y"] - answered["height"] < 40
    # However long the question is, what was expected has room beside it.
    feedback.locator("dt").evaluate(
        "node => { node.textContent = 'Which of the two is better? '.repeat(6); }"
    )
    around, expected = feedback.bounding_box(), feedback.locator("dd").bounding_box()
    assert around is not None
    assert expected is not None
    assert expected["width"] > 60
    assert expected["x"] + expected["width"] <= around["x"] + around["width"]
    expect(page.get_by_role("radio", name="Yes")).to_be_disabled()
    page.keyboard.press("Enter")
    expect(page.locator("#phase")).to_have_text("Qualification")
    expect(feedback).to_be_hidden()
    page.keyboard.press("2")
    page.get_by_label("Why not?").fill("No idea.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    expect(page.get_by_text("Thank you for taking part.")).to_be_visible()


# Who comes in, and how it looks


def test_a_link_without_its_key_leads_nowhere_and_a_worker_comes_back_to_the_work(
    work: Callable[..., Worker],
) -> None:
    worker = work("choice")
    for path in (
        "/annotate/choice",
        "/annotate/choice?key=wrong",
        "/annotate/nothing?key=x",
        "/annotate/choice/work",
    ):
        worker.page.goto(path)
        expect(worker.page.get_by_text("This link leads nowhere.")).to_be_visible()
    page = worker.enter("5f3a")
    page.keyboard.press("1")
    worker.wait_saved()
    page.goto(f"{worker.path}&PROLIFIC_PID=5f3a&STUDY_ID=s&SESSION_ID=x")
    expect(page.get_by_role("radio", name="Yes")).to_be_checked()
    # Another worker at the same machine is asked.
    page.goto(f"{worker.path}&PROLIFIC_PID=6b4c&STUDY_ID=s&SESSION_ID=y")
    expect(page.get_by_label("I have read this")).to_be_visible()


def test_right_to_left_texts_are_read_and_marked_from_the_right(work: Callable[..., Worker]) -> None:
    worker = work("hebrew")
    page = worker.enter()
    text = page.locator(".text")
    assert text.evaluate("element => getComputedStyle(element).direction") == "rtl"
    # A heading begins where its text does, and a scale with what is said first.
    ends = [
        box["x"] + box["width"] for box in map(Locator.bounding_box, (text, page.locator(".panel h2"))) if box
    ]
    assert ends[0] == pytest.approx(ends[1], abs=1)
    points = [point.bounding_box() for point in page.locator(".points .option").all()]
    assert [point["x"] for point in points if point] == sorted(
        (one["x"] for one in points if one), reverse=True
    )
    text.focus()
    _press(*["Shift+ArrowLeft"] * 3, "1")(page)
    expect(page.locator("mark.span")).to_have_text("זהו")
    worker.wait_saved()
    assert worker.saved()["values"]["marks"] == [{"start": 0, "end": 3, "label": "טעות", "note": ""}]


def test_reading_is_set_and_remembered(work: Callable[..., Worker]) -> None:
    worker = work("choice")
    page = worker.enter()
    page.get_by_role("button", name="Reading").click()
    page.get_by_label("Size of letters").select_option("Large")
    page.get_by_label("Single keys").uncheck()
    page.get_by_label("Colours").select_option("Dark")
    expect(page.locator("html")).to_have_css("color-scheme", "dark")
    page.keyboard.press("Escape")
    splitter = page.get_by_role("separator", name="Width of the text")
    before = page.locator(".reading").bounding_box()
    splitter.focus()
    _press("ArrowRight", "ArrowRight")(page)
    reading = page.locator(".reading")
    reading.evaluate("element => { element.scrollTop = 200; }")
    page.wait_for_timeout(300)
    page.reload()
    expect(page.locator(".question")).to_be_visible()
    assert page.locator(".text").evaluate("element => getComputedStyle(element).fontSize") == "20px"
    after = reading.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]
    expect(reading).to_have_js_property("scrollTop", 200)
    page.keyboard.press("1")
    expect(page.get_by_role("radio", name="Yes")).not_to_be_checked()
    expect(page.locator("html")).to_have_css("color-scheme", "dark")


def test_on_a_phone_an_item_begins_at_its_beginning(work: Callable[..., Worker]) -> None:
    worker = work("when", (400, "light"))
    page = worker.enter()
    page.set_viewport_size({"width": 400, "height": 300})
    page.keyboard.press("1")
    worker.wait_saved()
    page.evaluate("scrollTo(0, 60)")
    page.wait_for_timeout(300)
    page.reload()
    expect(page.get_by_role("radio", name="Yes")).to_be_checked()
    expect(page.locator("html")).to_have_js_property("scrollTop", 60)
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("#far")).to_have_text("1 of 3 done")
    expect(page.locator("html")).to_have_js_property("scrollTop", 0)


def test_idle_time_is_taken_out(work: Callable[..., Worker]) -> None:
    worker = work("choice")
    page = worker.page
    page.clock.install()
    worker.enter()
    expect(page.locator(".question")).to_be_visible()
    page.keyboard.press("1")
    page.clock.run_for(1000)
    worker.wait_saved()
    page.clock.fast_forward("10:00")
    with page.expect_request("**/answer") as sent:
        page.keyboard.press("2")
        page.clock.run_for(1000)
    body = sent.value.post_data_json
    assert body["elapsed_ms"] >= 600_000
    assert 60_000 <= body["active_ms"] < 90_000


def test_every_page_is_readable_by_everybody(work: Callable[..., Worker]) -> None:
    for name in [*FORMS, "hebrew", "when"]:
        worker = work(name)
        worker.page.goto(worker.path)
        expect(worker.page.get_by_role("button", name="Begin")).to_be_visible()
        if name == "choice":
            for _ in worker.visit.looks():
                worker.visit.check("annotate-enter")
        worker.enter()
        expect(worker.page.locator(".question").first).to_be_visible()
        if name in ANSWERS:
            ANSWERS[name][0](worker.page)
            worker.wait_saved()
        for _ in worker.visit.looks():
            worker.visit.check(f"annotate-{name}")
        if name == "choice":
            worker.page.get_by_role("button", name="Instructions").click()
            for _ in worker.visit.looks():
                worker.visit.check("annotate-instructions")
            worker.page.keyboard.press("Escape")
            worker.page.get_by_role("button", name="Reading").click()
            for _ in worker.visit.looks():
                worker.visit.check("annotate-reading")
            worker.page.keyboard.press("Escape")
            worker.page.keyboard.press("Control+Enter")
            expect(worker.page.locator("#code")).to_be_visible()
            for _ in worker.visit.looks():
                worker.visit.check("annotate-done")


@pytest.mark.parametrize("look", LOOKS)
def test_what_has_the_focus_is_not_covered_by_the_bar_at_the_bottom(
    work: Callable[..., Worker], look: Any
) -> None:
    worker = work("preference", look)
    page = worker.enter()
    expect(page.locator(".question").first).to_be_visible()
    ANSWERS["preference"][0](page)
    worker.wait_saved()
    chosen, bar = page.locator(".option:has(:focus)"), page.locator(".hand-in")
    low, high = chosen.bounding_box(), bar.bounding_box()
    assert low is not None
    assert high is not None
    assert low["y"] + low["height"] <= high["y"]


@pytest.mark.parametrize("look", LOOKS)
def test_an_organiser_follows_a_project(work: Callable[..., Worker], served: Served, look: Any) -> None:
    name = f"judged-{look[0]}-{look[1]}"
    organiser = work(name, look)
    page, visit = organiser.page, organiser.visit
    page.goto("/sign-in?next=/projects")
    page.get_by_label("E-mail address").fill("owner@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Annotation")).to_be_visible()
    visit.check("projects")
    page.get_by_role("link", name="New project").click()
    visit.check("project-new")
    page.goto(f"/projects/{name}")
    expect(page.get_by_text("0 of 10 answers")).to_be_visible()
    for id, keys in (("ada", "11111"), ("bob", "11113")):
        worker = work(name, look)
        worker.enter(id)
        for number, key in enumerate(keys, 1):
            worker.page.keyboard.press(key)
            worker.page.keyboard.press("Enter")
            expect(worker.page.locator("#far")).to_have_text(f"{number} of 5 done")
    # The page follows by itself.
    expect(page.get_by_text("10 of 10 answers")).to_be_visible(timeout=20_000)
    page.get_by_text("Act", exact=True).first.click()
    visit.check("project")
    organiser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: The same for Prolific").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{visit.address}{organiser.path}&{PROLIFIC}"
    page.get_by_role("link", name="What people see").click()
    expect(page.get_by_role("radio", name="Perhaps")).to_be_visible()
    page.get_by_role("radio", name="Perhaps").check()
    visit.check("project-items")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("heading", name="Item 2 of 5")).to_be_visible()
    page.get_by_role("link", name="Agreement, times and pay").click()
    expect(page.get_by_role("heading", name="What people disagree on")).to_be_visible()
    expect(page.get_by_text("0% of pairs agree (0% to 79%)")).to_be_visible()
    page.get_by_text("0% of pairs agree (0% to 79%)").click()
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_role("radio", name="Perhaps")).not_to_be_checked()  # nothing was saved
    page.go_back()
    visit.check("project-numbers")
    page.goto(f"/projects/{name}")
    page.get_by_text("Act", exact=True).first.click()
    page.get_by_role("button", name="Exclude").first.click()
    expect(page.get_by_text("5 of 10 answers")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Answers as JSON lines").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 1 + 10  # the head, and what does not count is marked so
    late = work(name, look)
    late.enter("cyd")
    page.get_by_role("button", name="Close it").click()
    expect(page.get_by_text("The project is closed.")).to_be_visible()
    late.page.keyboard.press("1")
    expect(late.page.get_by_role("heading", name="This project is closed")).to_be_visible()
    expect(late.page.get_by_role("button", name="Go on with the next")).to_have_count(0)
    # Whoever did something finds the code again.
    worker.page.reload()
    expect(worker.page.locator("#code")).to_have_text("DONE")
    expect(worker.page.get_by_role("button", name="Back to your last answer")).to_have_count(0)
