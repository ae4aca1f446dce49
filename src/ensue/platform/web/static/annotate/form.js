// Draw a form as the server describes it (ensue/benchmarks/people/form.py): panels to read beside fields to answer.
import { choice, choices, preference, scale } from "./choosing.js";
import { digitOf, directionOf, fresh, h, isTyping, same } from "./dom.js";
import { order, place, rank } from "./ordering.js";
import { Panel } from "./panels.js";
import { sentences } from "./sentences.js";
import { spans } from "./spans.js";
import { text } from "./writing.js";

const TYPES = { choice, choices, order, place, preference, rank, scale, sentences, spans, text };

export class Form {
  // `changed` is called with every change, `submit` when a field's own key hands everything in.
  constructor(given, values, { changed, submit }) {
    this.given = given;
    this.closed = false;
    this.panels = new Map(given.panels.map((one) => [one.id, new Panel(one)]));
    const arranged = arrange(given);
    this.fields = given.fields.map((field) => this.field(field, arranged, changed, submit));
    this.shape = arranged.shape;
    this.reading = arranged.reading.map((row) => h("div", { class: row.length > 1 ? "pair" : "alone" }, row.map((id) => this.panels.get(id).element)));
    this.answers = h("div", { class: "fields" }, given.title && h("h2", { dir: "auto" }, given.title), this.fields.map((one) => one.box));
    for (const one of this.fields) one.control.set(values[one.field.id] ?? null);
    this.showAsked();
  }

  field(field, arranged, changed, submit) {
    const panel = this.panels.get(field.panel);
    const context = {
      label: field.label, panels: this.panels, panel, source: panel, submit,
      changed: () => { this.showAsked(); this.tell(field.id, ""); changed(); },
    };
    const control = TYPES[field.type](field, context);
    const problem = h("p", { class: "problem", hidden: true, id: fresh("problem") });
    const within = arranged.within.has(field.id) && panel.element;
    const box = h("fieldset", { class: `question type-${field.type}`, "data-field": field.id, dir: directionOf(field.label), "aria-describedby": problem.id },
      h("legend", { dir: "auto" }, field.label, !field.required && h("span", { class: "soft" }, " (optional)")),
      field.help && h("p", { class: "help", dir: "auto" }, field.help), within, control.element, problem);
    return { field, control, box, problem };
  }

  // What is answered now, asked or not; a field without an answer is left out.
  values() {
    const found = this.fields.map((one) => [one.field.id, one.control.value()]);
    return Object.fromEntries(found.filter(([, value]) => value !== null));
  }

  // What is handed in.
  settled() {
    const found = this.values();
    for (const { field, control } of this.fields) {
      const value = control.settle ? control.settle(found[field.id] ?? null) : found[field.id] ?? null;
      if (value !== null && this.isAsked(field, found)) found[field.id] = value;
    }
    return found;
  }

  // What depends on a field that is not asked is not asked either.
  isAsked(field, values) {
    if (!field.when) return true;
    const other = this.given.fields.find((one) => one.id === field.when.field);
    return same(values[other.id] ?? null, field.when.equals ?? null) && this.isAsked(other, values);
  }

  showAsked() {
    const values = this.values();
    for (const { field, box, control } of this.fields) {
      const hidden = !this.isAsked(field, values);
      if (box.hidden && !hidden) requestAnimationFrame(() => control.grow?.());
      box.hidden = hidden;
    }
  }

  // Return what is wrong, as the server would; it has the last word.
  problems(values) {
    const found = [];
    for (const { field, control } of this.fields) {
      if (!this.isAsked(field, values)) continue;
      const value = values[field.id] ?? null;
      const missing = value === null && field.required ? "This is not answered yet." : "";
      const problem = control.problem?.(value) || missing;
      if (problem) found.push({ field: field.id, problem });
    }
    return found;
  }

  tell(id, words) {
    const one = this.fields.find((other) => other.field.id === id);
    if (!one) return false;
    one.problem.textContent = words;
    one.problem.hidden = !words;
    return true;
  }

  // Show what is wrong where it is, and go to the first of it. Return what belongs to no field.
  tellAll(problems) {
    for (const { field } of this.fields) this.tell(field.id, "");
    const others = problems.filter((one) => !this.tell(one.field, one.problem));
    const first = this.fields.find((one) => !one.problem.hidden);
    if (first) this.focus(first);
    return others.map((one) => one.problem);
  }

  focus(one = this.fields.find((other) => !other.box.hidden)) {
    const target = one?.box.querySelector("input:checked:not(:disabled), input:not(:disabled), textarea:not(:disabled), button.handle, select") ?? one?.control.marks?.body;
    one?.box.scrollIntoView({ block: "nearest" });
    target?.focus({ preventScroll: true });
  }

  // A key that was pressed anywhere; return whether it meant something.
  key(event) {
    if (this.closed || isTyping(document.activeElement)) return false;
    const asked = this.fields.filter((one) => !one.box.hidden);
    const marking = digitOf(event) ? asked.filter((one) => one.control.marks?.selected()) : [];
    const focused = asked.filter((one) => one.box.contains(document.activeElement));
    // A field that one is in takes its keys alone; otherwise the first that can.
    const open = asked.filter((one) => one.control.value() === null);
    const order = marking.length ? marking : focused.length ? focused : [...open, ...asked];
    return order.some((one) => one.control.key(event));
  }

  close() {
    this.closed = true;
    for (const { box, control } of this.fields) {
      for (const input of box.querySelectorAll("input, textarea, select, .label, .handle, .step, .spans button")) input.disabled = true;
      control.close?.();
    }
  }

  // Return the answer expected, in words by field.
  words(values) {
    return this.fields.filter(({ field }) => values[field.id] !== null && values[field.id] !== undefined)
      .map(({ field, control }) => [field.label, control.words(values[field.id])]);
  }
}

// Say which panels stand beside the fields, row by row, and which are within a field.
function arrange(given) {
  const drawn = new Set(given.fields.filter((one) => one.type === "place" || one.type === "sentences").map((one) => one.panel));
  const marked = new Set(given.fields.filter((one) => one.type === "spans").map((one) => one.panel));
  const compared = given.fields.find((one) => one.type === "preference");
  const pair = compared ? [compared.left, compared.right] : [];
  const free = given.panels.map((one) => one.id).filter((id) => !drawn.has(id) && !marked.has(id) && !pair.includes(id));
  // Where there is nothing else to read, the text to mark has the room; a text that is compared has its side.
  const apart = !free.length && !pair.length;
  const within = new Set();
  const placed = new Set(apart ? marked : pair);
  for (const one of given.fields.filter((other) => other.type === "spans")) {
    if (!placed.has(one.panel)) { within.add(one.id); placed.add(one.panel); }
  }
  const reading = [...(apart ? [...marked] : free).map((id) => [id]), ...(pair.length ? [pair] : [])];
  return { reading, within, shape: pair.length ? "above" : reading.length ? "beside" : "single" };
}
