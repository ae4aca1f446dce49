// How the page is read: size and width of lines, the width of the text beside the fields, where one has scrolled to.
import { h, kept } from "./dom.js";

const DEFAULTS = { size: 17, line: 1.6, measure: 70, face: "serif", keys: true };
const FACES = { serif: "Georgia, 'Times New Roman', serif", sans: "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif" };

export const settings = { ...DEFAULTS, ...kept.read("reading", {}) };

function apply() {
  const style = document.documentElement.style;
  style.setProperty("--read-size", `${settings.size}px`);
  style.setProperty("--read-line", settings.line);
  style.setProperty("--read-measure", settings.measure ? `${settings.measure}ch` : "100%");
  style.setProperty("--read-face", FACES[settings.face] ?? FACES.serif);
}
apply();

// Fill the dialog in which reading is set; everything holds at once and is remembered.
export function fillSettings(dialog) {
  const change = (key, value) => { settings[key] = value; kept.write("reading", settings); apply(); };
  const list = (key, label, options) => {
    const select = h("select", { id: `reading-${key}` }, options.map(([value, words]) => h("option", { value }, words)));
    select.value = String(settings[key]);
    select.addEventListener("change", () => change(key, key === "face" ? select.value : Number(select.value)));
    return h("p", { class: "field" }, h("label", { for: select.id }, label), select);
  };
  const keys = h("input", { type: "checkbox", id: "reading-keys" });
  keys.checked = settings.keys;
  keys.addEventListener("change", () => change("keys", keys.checked));
  dialog.querySelector(".body").replaceChildren(
    list("size", "Size of letters", [[14, "Small"], [17, "Medium"], [20, "Large"], [24, "Very large"], [30, "Largest"]]),
    list("line", "Space between lines", [[1.4, "Narrow"], [1.6, "Medium"], [1.9, "Wide"]]),
    list("measure", "Length of lines", [[50, "Short"], [70, "Medium"], [90, "Long"], [0, "As wide as the window"]]),
    list("face", "Letters", [["serif", "With serifs"], ["sans", "Without serifs"]]),
    h("p", { class: "field" }, h("label", { for: "reading-theme" }, "Colours"), themes()),
    h("p", { class: "ticked" }, keys, h("label", { for: keys.id }, "Answer by single keys: 1, 2, …, Enter, and ? for the instructions")),
  );
}

// The theme of every page, which theme.js applies before a page is drawn.
function themes() {
  const select = h("select", { id: "reading-theme" }, [["", "As the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, words]) => h("option", { value }, words)));
  select.value = document.documentElement.dataset.theme ?? "";
  select.addEventListener("change", () => {
    if (select.value) document.documentElement.dataset.theme = select.value;
    else delete document.documentElement.dataset.theme;
    try { localStorage.setItem("theme", select.value); } catch { /* not kept, then */ }
  });
  return select;
}

// Let the line between text and fields be moved, by dragging and by keys.
export function splitter(container) {
  const [least, most, usual] = [25, 75, 56];
  let share = Number(kept.read("split", usual)) || usual;
  const bar = h("div", { class: "splitter", role: "separator", tabindex: 0, "aria-orientation": "vertical", "aria-label": "Width of the text", "aria-valuemin": least, "aria-valuemax": most });
  const set = (value) => {
    share = Math.min(Math.max(value, least), most);
    container.style.setProperty("--split", `${share}%`);
    bar.setAttribute("aria-valuenow", Math.round(share));
    kept.write("split", share);
  };
  set(share);
  bar.addEventListener("keydown", (event) => {
    const far = { ArrowLeft: share - 2, ArrowRight: share + 2, Home: least, End: most, Enter: usual }[event.key];
    if (far === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(far);
  });
  bar.addEventListener("dblclick", () => set(usual));
  bar.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    bar.focus();
    bar.setPointerCapture(event.pointerId);
    const follow = (at) => {
      const box = container.getBoundingClientRect();
      set((100 * (at.clientX - box.left)) / box.width);
    };
    bar.addEventListener("pointermove", follow);
    bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", follow), { once: true });
  });
  return bar;
}

function forgetScrolls() {
  const before = kept.keys("scroll:");
  if (before.length > 200) before.forEach((one) => kept.forget(one));
}

// Where the page itself scrolls, as on a phone, an item begins at its beginning, and is where it was when it is come back to.
let page = "";
export function keepPageScroll(id) {
  forgetScrolls();
  page = "";
  const at = kept.read(`scroll:page:${id}`, 0);
  requestAnimationFrame(() => { scrollTo(0, at); page = id; });
}
addEventListener("scroll", () => {
  const mine = page;
  if (mine) setTimeout(() => { if (mine === page) kept.write(`scroll:page:${mine}`, Math.round(scrollY)); }, 200);
}, { passive: true });

// Keep where a text was scrolled to: the same text again, in this item or the next, is where it was.
export function keepScroll(element, words) {
  forgetScrolls();
  let sum = 5381;
  for (let at = 0; at < words.length; at += 1) sum = (sum * 33 + words.charCodeAt(at)) >>> 0;
  const key = `scroll:${sum}:${words.length}`;
  const at = kept.read(key, 0);
  if (at) requestAnimationFrame(() => { element.scrollTop = at; });
  let waiting = false;
  element.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; if (element.isConnected) kept.write(key, Math.round(element.scrollTop)); }, 200);
  }, { passive: true });
}
