// Fields in which one of a few things is chosen: choice, choices, scale, preference.
import { digitOf, fresh, h, same } from "./dom.js";

// A row of radio buttons or boxes, each with the number of its key.
function optionList(type, entries, changed, shape = "") {
  const name = fresh("option");
  const inputs = [];
  const rows = entries.map(({ words, key, extra }) => {
    const input = h("input", { type, name, onchange: changed });
    inputs.push(input);
    return h("label", { class: "option", dir: "auto" }, input, key && h("kbd", { "aria-hidden": "true" }, key), h("span", { class: words.length > LONG ? "long" : null }, words), extra);
  });
  return { inputs, element: h("div", { class: `options ${shape}` }, rows) };
}

// What takes more than a few lines is read like any other text.
const LONG = 200;

const keyOf = (place) => (place < 9 ? String(place + 1) : place === 9 ? "0" : "");

function press(input) {
  input.focus();
  input.click();
  return true;
}

export function choice(field, { changed }) {
  const values = field.options.map((one) => one.value);
  // "None of them" stands behind a long list, so it has a key of its own: 0, which else is the tenth's.
  const none = values.indexOf("none");
  const zero = none >= 0 ? none : 9;
  const keyAt = (place) => (place === zero ? "0" : place < 9 ? keyOf(place) : "");
  const { inputs, element } = optionList("radio", field.options.map((one, place) => ({ words: one.label, key: keyAt(place) })), changed);
  return {
    element,
    value: () => values[inputs.findIndex((input) => input.checked)] ?? null,
    set: (value) => inputs.forEach((input, place) => { input.checked = value !== null && same(values[place], value); }),
    words: (value) => field.options.find((one) => same(one.value, value))?.label ?? String(value),
    key(event) {
      const digit = digitOf(event);
      const input = inputs[digit === 10 ? zero : digit - 1];
      return input && !input.disabled ? press(input) : false;
    },
  };
}

export function choices(field, { changed }) {
  const values = field.options.map((one) => one.value);
  const { inputs, element } = optionList("checkbox", field.options.map((one, place) => ({ words: one.label, key: keyOf(place) })), changed);
  let touched = false;
  element.addEventListener("change", () => { touched = true; });
  const least = field.required ? Number(field.least ?? 1) : 0;
  return {
    element,
    value() {
      const chosen = values.filter((_, place) => inputs[place].checked);
      return chosen.length || touched ? chosen : null;
    },
    set(value) {
      inputs.forEach((input, place) => { input.checked = (value ?? []).some((one) => same(one, values[place])); });
    },
    words: (value) => value.map((one) => field.options.find((option) => same(option.value, one))?.label ?? one).join(", ") || "none",
    problem: (value) => ((value ?? []).length < least ? `Choose at least ${least}.` : ""),
    // None of them is an answer, too, where none is asked for.
    settle: (value) => value ?? (least ? null : []),
    key(event) {
      const input = inputs[digitOf(event) - 1];
      return input && !input.disabled ? press(input) : false;
    },
  };
}

export function scale(field, context) {
  const [least, most, step] = [Number(field.least), Number(field.most), Number(field.step ?? 1)];
  const count = step > 0 ? Math.round((most - least) / step) + 1 : Infinity;
  return count <= 11 ? pointScale(field, context, least, step, count) : slidingScale(field, context, least, most, step);
}

// Steps such as 0.1 would otherwise leave 0.30000000000000004.
const point = (least, step, place) => Number((least + step * place).toPrecision(12));

function pointScale(field, { changed }, least, step, count) {
  const points = Array.from({ length: count }, (_, place) => point(least, step, place));
  const labels = field.labels ?? {};
  const { inputs, element } = optionList("radio", points.map((value) => ({
    words: String(value), extra: labels[value] && h("small", { dir: "auto" }, labels[value]),
  })), changed, "points");
  return {
    element,
    value: () => points[inputs.findIndex((input) => input.checked)] ?? null,
    set: (value) => inputs.forEach((input, place) => { input.checked = points[place] === value; }),
    words: String,
    key(event) {
      if (!digitOf(event)) return false;
      const place = points.findIndex((value) => String(value) === event.key || (value === 10 && event.key === "0" && !points.includes(0)));
      return place >= 0 && !inputs[place].disabled ? press(inputs[place]) : false;
    },
  };
}

function slidingScale(field, { changed, label }, least, most, step) {
  const bounds = { min: least, max: most, step: step || "any" };
  const range = h("input", { type: "range", ...bounds, class: "unset", "aria-label": label });
  const number = h("input", { type: "number", ...bounds, inputmode: "decimal", "aria-label": `${label}, as a number` });
  range.value = (least + most) / 2;
  const read = (input) => (input.value === "" || !Number.isFinite(input.valueAsNumber) ? null : input.valueAsNumber);
  range.addEventListener("input", () => { number.value = range.value; range.classList.remove("unset"); changed(); });
  // A click on the middle, where it stands before it is set, is an answer, too.
  range.addEventListener("pointerup", () => { if (number.value === "") range.dispatchEvent(new Event("input")); });
  number.addEventListener("input", () => {
    range.classList.toggle("unset", read(number) === null);
    if (read(number) !== null) range.value = number.value;
    changed();
  });
  const named = Object.entries(field.labels ?? {}).sort(([one], [other]) => one - other);
  const valid = (value) => value >= least && value <= most &&
    (!step || Math.abs((value - least) / step - Math.round((value - least) / step)) < 1e-6);
  return {
    element: h("div", { class: "sliding" }, h("div", { class: "slide" }, h("span", { "aria-hidden": "true" }, least), range, h("span", { "aria-hidden": "true" }, most), number),
      named.length > 0 && h("p", { class: "soft" }, named.map(([value, words]) => h("span", { dir: "auto" }, `${value} ${words} `)))),
    // What the server would not take even as a draft is not sent to it.
    value: () => { const value = read(number); return value !== null && valid(value) ? value : null; },
    set(value) {
      number.value = value ?? "";
      range.value = value ?? (least + most) / 2;
      range.classList.toggle("unset", value === null);
    },
    words: String,
    problem: () => {
      const value = read(number);
      return value !== null && !valid(value) ? `It is a number from ${least} to ${most}${step && step !== 1 ? ` in steps of ${step}` : ""}.` : "";
    },
    key: () => false,
  };
}

export function preference(field, { changed, panels }) {
  const title = (side, otherwise) => panels.get(field[side])?.title || otherwise;
  const options = [
    { value: "left", words: title("left", "The left one") },
    { value: "right", words: title("right", "The right one") },
    ...(field.tie ? [{ value: "tie", words: "Neither is better" }] : []),
  ];
  const { inputs, element } = optionList("radio", options.map((one, place) => ({ words: one.words, key: keyOf(place) })), () => { show(); changed(); }, "side-by-side");
  const value = () => options[inputs.findIndex((input) => input.checked)]?.value ?? null;
  const show = () => ["left", "right"].forEach((side) => panels.get(field[side])?.element.classList.toggle("chosen", value() === side));
  return {
    element,
    value,
    set(given) {
      inputs.forEach((input, place) => { input.checked = options[place].value === given; });
      show();
    },
    words: (given) => options.find((one) => one.value === given)?.words ?? given,
    key(event) {
      const sides = { ArrowLeft: 1, ArrowRight: 2 };
      const away = document.activeElement === document.body || document.activeElement === null;
      const place = digitOf(event) || (away && !event.shiftKey && sides[event.key]) || 0;
      const input = inputs[place - 1];
      return input && !input.disabled ? press(input) : false;
    },
  };
}
