// Fields about places: order (by dragging or keys), rank (ties allowed), place (where a sentence belongs).
import { digitOf, fresh, h, say } from "./dom.js";

export function order(field, { changed }) {
  const texts = new Map(field.entries.map((entry) => [String(entry.id), entry.text]));
  let ids = [...texts.keys()];
  let touched = false;
  const hint = h("p", { class: "soft", id: fresh("hint") }, "Drag them, or press the arrow keys on a handle.");
  const list = h("ol", { class: "order" });
  const rows = new Map();

  for (const [id, words] of texts) {
    const handle = h("button", { type: "button", class: "handle", "data-passive": true, "aria-describedby": hint.id, "aria-label": `Move: ${words}` }, "⠿");
    const up = h("button", { type: "button", class: "step", tabindex: -1, "aria-label": `Up: ${words}`, onclick: () => move(id, -1, handle) }, "↑");
    const down = h("button", { type: "button", class: "step", tabindex: -1, "aria-label": `Down: ${words}`, onclick: () => move(id, 1, handle) }, "↓");
    const row = h("li", { "data-id": id }, handle, h("span", { class: "words", dir: "auto" }, words), h("span", { class: "steps" }, up, down));
    handle.addEventListener("keydown", (event) => {
      const far = { ArrowUp: -1, ArrowDown: 1, Home: -ids.length, End: ids.length }[event.key];
      if (!far || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      move(id, far, handle);
    });
    handle.addEventListener("pointerdown", (event) => drag(event, id, row, handle));
    rows.set(id, row);
  }
  // The row that is dragged or has the focus stays where it is and the others move, so that it keeps both.
  const draw = (still = null) => {
    const at = ids.indexOf(still);
    ids.forEach((id, place) => {
      if (place < at) list.insertBefore(rows.get(id), rows.get(still));
      else if (place !== at) list.append(rows.get(id));
    });
  };
  draw();

  function put(id, place) {
    const from = ids.indexOf(id);
    const to = Math.min(Math.max(place, 0), ids.length - 1);
    if (from === to) return false;
    ids.splice(from, 1);
    ids.splice(to, 0, id);
    draw(id);
    return true;
  }

  function move(id, far, handle) {
    if (handle.disabled) return;
    touched = true;
    put(id, ids.indexOf(id) + far);
    handle.focus();
    rows.get(id).scrollIntoView({ block: "nearest" });
    say(`At place ${ids.indexOf(id) + 1} of ${ids.length}.`);
    changed();
  }

  function drag(event, id, row, handle) {
    if (handle.disabled || event.button > 0) return;
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    row.classList.add("dragged");
    const before = ids.join("\n");
    const follow = (at) => {
      const others = ids.filter((other) => other !== id);
      const place = others.filter((other) => {
        const box = rows.get(other).getBoundingClientRect();
        return at.clientY > box.top + box.height / 2;
      }).length;
      put(id, place);
    };
    const stop = () => {
      row.classList.remove("dragged");
      handle.removeEventListener("pointermove", follow);
      if (ids.join("\n") === before) return;
      touched = true;
      say(`At place ${ids.indexOf(id) + 1} of ${ids.length}.`);
      changed();
    };
    handle.addEventListener("pointermove", follow);
    handle.addEventListener("lostpointercapture", stop, { once: true });
  }

  return {
    element: h("div", {}, hint, list),
    value: () => (touched ? [...ids] : null),
    set(value) {
      touched = value !== null;
      const known = (value ?? []).filter((id) => texts.has(id));
      ids = [...known, ...[...texts.keys()].filter((id) => !known.includes(id))];
      draw();
    },
    // Who hands in the order as it stands means it.
    settle: () => [...ids],
    words: (value) => value.map((id) => texts.get(id)).join(" → "),
    key: () => false,
  };
}

export function rank(field, { changed }) {
  const count = field.entries.length;
  const groups = field.entries.map((entry) => {
    const [name, id] = [fresh("rank"), fresh("entry")];
    const inputs = Array.from({ length: count }, (_, place) =>
      h("input", { type: "radio", name, onchange: changed, "aria-label": `Place ${place + 1}` }));
    const choices = h("span", { class: "places", role: "radiogroup", "aria-labelledby": id }, inputs.map((input, place) =>
      h("label", { class: "option" }, input, h("span", { "aria-hidden": "true" }, place + 1))));
    return { id: String(entry.id), inputs, row: h("li", {}, h("span", { class: "words", dir: "auto", id }, entry.text), choices) };
  });
  const placeOf = (group) => group.inputs.findIndex((input) => input.checked) + 1;
  return {
    element: h("div", {}, h("p", { class: "soft" }, `1 is best; the same place may be given twice.`), h("ul", { class: "rank" }, groups.map((group) => group.row))),
    value() {
      const given = groups.filter(placeOf).map((group) => [group.id, placeOf(group)]);
      return given.length ? Object.fromEntries(given) : null;
    },
    set(value) {
      for (const group of groups) group.inputs.forEach((input, place) => { input.checked = value?.[group.id] === place + 1; });
    },
    words: (value) => field.entries.map((entry) => `${value[entry.id]}: ${entry.text}`).join("; "),
    problem: (value) => (value && Object.keys(value).length < count ? "Give each of them a place." : ""),
    key(event) {
      const digit = digitOf(event);
      if (!digit || digit > count) return false;
      const group = groups.find((one) => one.row.contains(document.activeElement)) ?? groups.find((one) => !placeOf(one)) ?? groups[0];
      if (group.inputs[0].disabled) return false;
      const input = group.inputs[digit - 1];
      input.focus();
      input.click();
      const next = groups.find((one) => !placeOf(one));
      if (next) next.inputs[0].focus();
      return true;
    },
  };
}

export function place(field, { changed, source }) {
  const sentences = source.sentences ?? [];
  const name = fresh("place");
  const inputs = [];
  const rows = [];
  for (let at = 0; at <= sentences.length; at += 1) {
    const words = at === 0 ? "Before the first sentence" : at === sentences.length ? "After the last sentence" : `Between sentences ${at} and ${at + 1}`;
    const input = h("input", { type: "radio", name, "aria-label": words, onchange: () => { show(); changed(); } });
    inputs.push(input);
    rows.push(h("li", { class: "gap" }, h("label", {}, input, h("span", { class: "here", dir: "auto" }, field.sentence))));
    if (at < sentences.length) rows.push(h("li", { class: "sentence", dir: "auto" }, sentences[at]));
  }
  const value = () => { const at = inputs.findIndex((input) => input.checked); return at < 0 ? null : at; };
  const show = () => inputs.forEach((input) => input.closest(".gap").classList.toggle("chosen", input.checked));
  return {
    element: h("div", { class: "placing" },
      h("p", { class: "soft" }, "The sentence:"), h("blockquote", { dir: "auto" }, field.sentence),
      h("ul", { class: "gaps", dir: source.direction || "auto" }, rows)),
    value,
    set(given) { inputs.forEach((input, at) => { input.checked = at === given; }); show(); },
    words: (given) => (given === 0 ? "before the first sentence" : given === sentences.length ? "after the last sentence" : `between sentences ${given} and ${given + 1}`),
    key: () => false,
  };
}
