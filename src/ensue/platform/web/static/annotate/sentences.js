// The field in which the sentences of a text are judged one at a time, each with a reason.
import { clean, digitOf, fresh, h, same, say } from "./dom.js";

export function sentences(field, { changed, source, submit }) {
  const texts = source.sentences ?? [];
  const values = field.options.map((one) => one.value);
  const judged = texts.map(() => ({ value: null, reason: "" }));
  let at = 0;
  let closed = false;
  const labelOf = (value) => field.options.find((one) => same(one.value, value))?.label ?? "";

  const rows = texts.map((words, place) => {
    const verdict = h("span", { class: "verdict" });
    const button = h("button", { type: "button", class: "one", dir: "auto", onclick: () => { go(place); focus(); } }, words, verdict);
    return { verdict, row: h("li", {}, button), button };
  });
  const name = fresh("sentence");
  const inputs = field.options.map((one, place) => h("input", { type: "radio", name, onchange: () => { judged[at].value = values[place]; show(); changed(); } }));
  const options = h("div", { class: "options" }, inputs.map((input, place) =>
    h("label", { class: "option", dir: "auto" }, input, place < 9 && h("kbd", { "aria-hidden": "true" }, place + 1), h("span", {}, field.options[place].label))));
  const isAsked = field.reason === "required";
  const why = isAsked ? "Why?" : "Why? (optional)";
  const reason = h("textarea", { rows: 2, maxlength: 5000, dir: "auto", "aria-label": why, placeholder: why,
    oninput: () => { judged[at].reason = clean(reason.value); changed(); } });
  const where = h("p", { class: "soft", "aria-live": "polite" });
  const back = h("button", { type: "button", class: "quiet", onclick: () => { go(at - 1); focus(); } }, "Sentence before");
  const on = h("button", { type: "button", class: "quiet", onclick: () => { go(at + 1); focus(); } }, "Next sentence");
  const element = h("div", { class: "judging" },
    h("ol", { class: "one-by-one", dir: source.direction || "auto" }, rows.map((one) => one.row)),
    where, h("div", { role: "radiogroup", "aria-label": "This sentence" }, options), field.reason && reason, h("p", { class: "actions" }, back, on));

  // Enter goes on to the next sentence, also from the reason; after the last one it hands everything in.
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing || event.target.closest("button") || closed) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey) { go(at - 1); focus(); return; }
    const next = judged.findIndex((one, place) => place > at && one.value === null);
    if (at < texts.length - 1) { go(next < 0 ? at + 1 : next); focus(); } else submit();
  });

  function go(place) {
    at = Math.min(Math.max(place, 0), texts.length - 1);
    show();
    rows[at].row.scrollIntoView({ block: "nearest" });
  }

  function focus() {
    (inputs.find((input) => input.checked) ?? inputs[0]).focus();
    say(texts[at]);
  }

  function show() {
    rows.forEach(({ row, verdict, button }, place) => {
      row.className = place === at ? "current" : judged[place].value === null ? "" : "judged";
      verdict.textContent = judged[place].value === null ? "" : labelOf(judged[place].value);
      if (place === at) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    });
    inputs.forEach((input, place) => { input.checked = judged[at]?.value !== null && same(values[place], judged[at]?.value); });
    if (reason.value !== (judged[at]?.reason ?? "")) reason.value = judged[at]?.reason ?? "";
    where.textContent = `Sentence ${at + 1} of ${texts.length}; ${judged.filter((one) => one.value !== null).length} judged.`;
    back.disabled = closed || at === 0;
    on.disabled = closed || at === texts.length - 1;
  }

  show();
  return {
    element,
    value() {
      if (judged.every((one) => one.value === null && !one.reason)) return null;
      return judged.map((one) => (one.value === null && !one.reason ? null : { value: one.value, reason: one.reason }));
    },
    set(value) {
      judged.forEach((one, place) => {
        one.value = value?.[place]?.value ?? null;
        one.reason = value?.[place]?.reason ?? "";
      });
      const open = judged.findIndex((one) => one.value === null);
      at = open < 0 ? 0 : open;
      show();
    },
    words: (value) => value.map((one, place) => `${place + 1}: ${labelOf(one?.value)}`).join("; "),
    problem(value) {
      const open = value ? judged.findIndex((one) => one.value === null || (isAsked && !one.reason.trim())) : -1;
      if (open < 0) return "";
      go(open);
      return judged[open].value === null ? `Sentence ${open + 1} is not judged yet.` : `Say in a few words why, for sentence ${open + 1}.`;
    },
    close() { closed = true; show(); },
    key(event) {
      const input = inputs[digitOf(event) - 1];
      if (!input || closed) return false;
      input.focus();
      input.click();
      return true;
    },
  };
}
