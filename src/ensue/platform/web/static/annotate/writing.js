// The field in which a text is written, with its words counted as it grows.
import { clean, countWords, fresh, h } from "./dom.js";

const number = (value) => value.toLocaleString("en");

export function text(field, { changed, label }) {
  const [least, most] = [Number(field.least_words || 0), field.most_words === null || field.most_words === undefined ? null : Number(field.most_words)];
  const described = fresh("count");
  const count = h("p", { class: "count", id: described });
  const short = !least && most !== null && most <= 40;
  const area = h("textarea", { rows: short ? 2 : least >= 40 ? 10 : 4, maxlength: 100000, dir: "auto", "aria-label": label, "aria-describedby": described, spellcheck: "true" });
  const grow = () => {
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight + 2, Math.max(window.innerHeight * 0.6, 160))}px`;
  };
  const limits = least && most !== null ? `${number(least)} to ${number(most)} are asked for` :
    least > 1 ? `at least ${number(least)} are asked for` : most !== null ? `at most ${number(most)} are asked for` : "";
  const wrong = (words) => (most !== null && words > most) || (words > 0 && words < least);
  const show = () => {
    const words = countWords(area.value);
    count.textContent = `${number(words)} ${words === 1 ? "word" : "words"}${limits ? `; ${limits}` : ""}`;
    count.classList.toggle("off", wrong(words));
  };
  area.addEventListener("input", () => { grow(); show(); changed(); });
  show();
  return {
    element: h("div", { class: "writing" }, area, count),
    value: () => clean(area.value) || null,
    set(value) { area.value = value ?? ""; show(); requestAnimationFrame(grow); },
    words: (value) => `“${value}”`,
    problem(value) {
      const words = countWords(value ?? "");
      if (field.required && words < Math.max(least, 1)) return least > 1 ? `Write at least ${number(least)} words; there are ${number(words)}.` : "Write something.";
      return most !== null && words > most ? `Write at most ${number(most)} words; there are ${number(words)}.` : "";
    },
    key: () => false,
    grow,
  };
}
