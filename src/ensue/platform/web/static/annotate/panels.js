// What is read: texts with parts that stand out, in which a part may be selected by mouse or keys.
// Places are in characters as Python counts them (code points), which JavaScript does not.
import { h } from "./dom.js";

export class Panel {
  constructor(given) {
    this.id = given.id;
    this.title = given.title;
    this.sentences = given.sentences;
    this.direction = given.direction || "auto";
    this.text = given.text ?? (given.sentences ?? []).join(" ");
    this.layers = []; // of the fields that mark parts: functions that return [{start, end, colour, words}]
    this.units = [0]; // where each character begins in JavaScript's string
    for (const character of this.text) this.units.push(this.units.at(-1) + character.length);
    this.fixed = (given.marks ?? []).map(([start, end]) => ({ start, end, colour: "fixed" }));
    this.body = h("div", { class: "text", dir: this.direction });
    this.element = h("section", { class: "panel", "data-panel": this.id, "aria-label": this.title || "Text" },
      this.title && h("h2", { dir: "auto" }, this.title), this.body);
    this.draw();
  }

  get length() { return this.units.length - 1; }

  part(start, end) { return this.text.slice(this.units[start], this.units[end]); }

  // Draw the text in pieces, each with what marks it.
  draw() {
    const held = this.selected(true);
    const marks = [...this.fixed, ...this.layers.flatMap((layer) => layer())];
    const cuts = [...new Set([0, this.length, ...marks.flatMap((mark) => [mark.start, mark.end])])].sort((one, other) => one - other);
    const pieces = cuts.slice(1).map((end, place) => {
      const start = cuts[place];
      const over = marks.filter((mark) => mark.start <= start && mark.end >= end);
      if (!over.length) return document.createTextNode(this.part(start, end));
      const title = over.map((mark) => mark.words).filter(Boolean).join(", ");
      return h("mark", { class: over.map((mark) => mark.colour).join(" "), title: title || null, "data-start": start }, this.part(start, end));
    });
    this.body.replaceChildren(...pieces, ...(this.caret ? [this.caret] : []));
    if (held) this.select(held.from, held.to);
  }

  scrollTo(start) {
    this.body.querySelector(`mark[data-start="${start}"]`)?.scrollIntoView({ block: "center" });
  }

  // Let parts be selected with the keys that a text field has, too.
  enableSelecting() {
    if (this.caret) return;
    this.caret = h("span", { class: "caret", hidden: true, "aria-hidden": "true" });
    this.body.append(this.caret);
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "group");
    this.body.setAttribute("aria-label", `${this.title || "Text"}: move with the arrow keys, select with Shift`);
    this.body.addEventListener("keydown", (event) => this.moveCaret(event));
    this.body.addEventListener("focus", () => { if (!this.selected(true)) this.select(0, 0); this.showCaret(); });
    this.body.addEventListener("blur", () => { this.caret.hidden = true; });
    document.addEventListener("selectionchange", () => { if (this.body.isConnected) { this.remember(); this.showCaret(); } });
  }

  moveCaret(event) {
    const selection = getSelection();
    const ways = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "backward", ArrowDown: "forward", Home: "backward", End: "forward" };
    const way = ways[event.key];
    if (!way || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const held = this.selected(true) ?? { from: 0, to: 0 };
    const byWord = event.ctrlKey || event.altKey;
    if (byWord && (event.key === "Home" || event.key === "End")) {
      const to = event.key === "Home" ? 0 : this.length;
      this.select(event.shiftKey ? held.from : to, to);
    } else {
      const far = { ArrowUp: "line", ArrowDown: "line", Home: "lineboundary", End: "lineboundary" }[event.key] ?? (byWord ? "word" : "character");
      selection.modify(event.shiftKey ? "extend" : "move", way, far);
      if (!this.selected(true)) this.select(held.from, held.to);
    }
    this.showCaret();
    this.caret.scrollIntoView({ block: "nearest" });
  }

  showCaret() {
    const held = document.activeElement === this.body && this.selected(true);
    this.caret.hidden = !held;
    if (!held) return;
    const at = document.createRange();
    at.setStart(...this.nodeAt(held.to));
    let box = at.getClientRects()[0];
    if (!box && held.to > 0) { // at the very end there is nothing behind it to have a place
      at.setStart(...this.nodeAt(held.to - 1));
      const before = at.getClientRects();
      box = before.length ? { left: before[before.length - 1].right, top: before[before.length - 1].top, height: before[before.length - 1].height } : null;
    }
    if (!box) return;
    const frame = this.body.getBoundingClientRect();
    this.caret.style.left = `${box.left - frame.left}px`;
    this.caret.style.top = `${box.top - frame.top}px`;
    this.caret.style.height = `${box.height}px`;
  }

  // The part that is selected; with `caret`, from where to where even if nothing lies between.
  selected(caret = false) {
    const selection = getSelection();
    if (!selection.rangeCount || !this.body.contains(selection.anchorNode) || !this.body.contains(selection.focusNode)) return null;
    const from = this.placeOf(selection.anchorNode, selection.anchorOffset);
    const to = this.placeOf(selection.focusNode, selection.focusOffset);
    if (caret) return { from, to };
    let [start, end] = [Math.min(from, to), Math.max(from, to)];
    const blank = (place) => !this.part(place, place + 1).trim();
    while (start < end && blank(start)) start += 1;
    while (end > start && blank(end - 1)) end -= 1;
    return start < end ? { start, end } : null;
  }

  // A button that is pressed, or a field that is written in, may take the selection away.
  remember() {
    const found = this.selected();
    if (found) this.last = found;
    else if (this.body.contains(getSelection().anchorNode)) this.last = null;
  }

  select(from, to) {
    getSelection().setBaseAndExtent(...this.nodeAt(from), ...this.nodeAt(to));
  }

  pieces() {
    const walker = document.createTreeWalker(this.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) found.push(walker.currentNode);
    return found;
  }

  placeOf(node, offset) {
    const range = document.createRange();
    range.setStart(this.body, 0);
    range.setEnd(node, offset);
    const unit = range.toString().length;
    // The character that begins here or covers this half.
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.units[middle] <= unit) low = middle; else high = middle - 1;
    }
    return low;
  }

  nodeAt(place) {
    let unit = this.units[place];
    const pieces = this.pieces();
    for (const node of pieces) {
      if (unit < node.data.length || (unit === node.data.length && node === pieces.at(-1))) return [node, unit];
      unit -= node.data.length;
    }
    return [this.body, 0];
  }
}
