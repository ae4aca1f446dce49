// An item as people see it, for those who run a project: everything can be tried, nothing is saved.
import { h } from "./dom.js";
import { Form } from "./form.js";
import "./reading.js";

const stage = document.getElementById("stage");
const trouble = document.getElementById("trouble");

function draw(item) {
  const form = new Form(item.form, {}, { changed: () => {}, submit: () => {} });
  const answers = h("div", { class: "answers", role: "region", "aria-label": "Questions", tabindex: 0 }, form.answers);
  const texts = form.reading.length && h("div", { class: "reading", role: "region", "aria-label": "What there is to read", tabindex: 0 }, form.reading);
  stage.className = `work ${form.shape}`;
  stage.replaceChildren(...(texts ? [texts] : []), answers);
  const expected = form.words(item.gold ?? {});
  const right = document.getElementById("right");
  if (!expected.length) { right.replaceChildren(h("p", { class: "soft" }, "What is right is not known here.")); return; }
  right.replaceChildren(h("section", {}, h("h2", {}, "What is right"),
    h("dl", { class: "facts" }, expected.map(([label, words]) => [h("dt", { dir: "auto" }, label), h("dd", { dir: "auto" }, words)])),
    item.phase === "training" && item.words && h("p", { class: "pre", dir: "auto" }, item.words)));
}

async function begin() {
  try {
    const answer = await fetch(stage.dataset.item, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    draw(await answer.json());
  } catch (error) {
    trouble.textContent = `The item could not be shown: ${error.message}. Load the page again.`;
    trouble.hidden = false;
  }
}

if (stage) begin();
