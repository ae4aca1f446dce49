// Small things that every module of the work page needs: elements, words, what is kept in the browser.

export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key.replace(/^on/, ""), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

let made = 0;
export const fresh = (start) => `${start}-${++made}`;

// Say something to those who hear the page.
export function say(words) {
  const place = document.getElementById("said");
  if (place) place.textContent = words;
}

// What is kept in this browser; where it keeps nothing, all else works.
export const kept = {
  read(key, otherwise = null) {
    try { return JSON.parse(localStorage.getItem(`ensue:${key}`)) ?? otherwise; } catch { return otherwise; }
  },
  write(key, value) {
    try { localStorage.setItem(`ensue:${key}`, JSON.stringify(value)); return true; } catch { return false; }
  },
  forget(key) {
    try { localStorage.removeItem(`ensue:${key}`); } catch { /* nothing was kept */ }
  },
  keys(start) {
    try { return Object.keys(localStorage).filter((key) => key.startsWith(`ensue:${start}`)).map((key) => key.slice(6)); } catch { return []; }
  },
};

// White space as Python's str.split has it, so that both sides count the same words.
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
export const countWords = (text) => text.split(SPACE).filter(Boolean).length;

// Without the control characters and halves of characters that the server does not take.
export function clean(text) {
  return text
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "")
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
}

// The direction that a label gives to what belongs to it, by the first letter that has one.
const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
export const directionOf = (words) => (RIGHT_TO_LEFT.test(words.match(LETTER)?.[0] ?? "") ? "rtl" : null);

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export const isTyping = (element) =>
  element instanceof HTMLTextAreaElement ||
  (element instanceof HTMLInputElement && !["radio", "checkbox", "range", "button"].includes(element.type)) ||
  element instanceof HTMLSelectElement;

// The digit of a key as a number from 1 on; 0 stands for ten.
export function digitOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !/^\d$/.test(event.key)) return 0;
  return Number(event.key) || 10;
}
