// The field in which parts of a text are marked, each with a label and a note.
import { clean, digitOf, h, say } from "./dom.js";

const COLOURS = 6;

export function spans(field, { changed, panel }) {
  let found = [];
  // Two fields may mark one text; their keys go on counting.
  const first = panel.labels ?? 0;
  panel.labels = first + field.labels.length;
  const colour = (label) => `c${(first + field.labels.indexOf(label)) % COLOURS}`;
  panel.enableSelecting();
  panel.layers.push(() => found.map((span) => ({ ...span, colour: `span ${colour(span.label)}`, words: span.label })));

  const list = h("ol", { class: "spans" });
  const none = h("p", { class: "soft" }, "Nothing is marked.");
  const hint = h("p", { class: "soft" }, "Select a part of the text, with the mouse, a finger, or the arrow keys and Shift; then press what it is.");
  const buttons = field.labels.map((label, place) =>
    // A press must not take the selection away before it is read.
    h("button", { type: "button", class: `label ${colour(label)}`, onmousedown: (event) => event.preventDefault(), onclick: () => add(label) },
      first + place < 9 && h("kbd", { "aria-hidden": "true" }, first + place + 1), label));

  function add(label) {
    const part = panel.selected() ?? panel.last;
    if (!part) { say("Select a part of the text first."); hint.classList.add("off"); return; }
    hint.classList.remove("off");
    if (found.some((span) => span.start === part.start && span.end === part.end && span.label === label)) return;
    found.push({ ...part, label, note: "" });
    found.sort((one, other) => one.start - other.start || one.end - other.end);
    panel.last = null;
    show();
    say(`Marked as ${label}: ${panel.part(part.start, part.end)}`);
    changed();
  }

  function show() {
    panel.draw();
    none.hidden = found.length > 0;
    list.replaceChildren(...found.map((span, place) => {
      const words = panel.part(span.start, span.end);
      const shown = words.length > 90 ? `${words.slice(0, 87)}…` : words;
      const kind = h("select", { "aria-label": `What is “${shown}”?` }, field.labels.map((label) => h("option", {}, label)));
      kind.value = span.label;
      kind.addEventListener("change", () => { span.label = kind.value; row.className = colour(span.label); panel.draw(); changed(); });
      const note = h("input", { type: "text", maxlength: 5000, dir: "auto", placeholder: "Note", "aria-label": `Note on “${shown}”` });
      note.value = span.note ?? "";
      note.addEventListener("input", () => { span.note = clean(note.value); changed(); });
      const remove = h("button", { type: "button", class: "plain", "aria-label": `Remove the mark on “${shown}”`, onclick: () => {
        found.splice(place, 1);
        show();
        (list.children[Math.min(place, found.length - 1)]?.querySelector("button:last-of-type") ?? panel.body).focus();
        changed();
      } }, "Remove");
      const go = h("button", { type: "button", class: "plain quote", dir: "auto", onclick: () => panel.scrollTo(span.start) }, shown);
      const row = h("li", { class: colour(span.label) }, go, kind, note, remove);
      return row;
    }));
  }

  const least = field.required ? Number(field.least ?? 0) : 0;
  return {
    element: h("div", {}, hint, h("div", { class: "labels", role: "group", "aria-label": "Mark as" }, buttons), none, list),
    marks: panel,
    value: () => found.map((span) => ({ start: span.start, end: span.end, label: span.label, note: span.note ?? "" })),
    set(value) { found = (value ?? []).map((span) => ({ ...span })); show(); },
    words: (value) => value.map((span) => `${span.label}: “${panel.part(span.start, span.end)}”`).join("; ") || "nothing",
    problem: () => (found.length < least ? `Mark at least ${least}.` : ""),
    key(event) {
      const place = digitOf(event) - 1 - first;
      if (place < 0 || place >= field.labels.length || !(panel.selected() ?? panel.last)) return false;
      add(field.labels[place]);
      return true;
    },
  };
}
