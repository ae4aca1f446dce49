// The work page: take an item, draw its form, save what is answered, hand it in, take the next.
import { call, insist, NoAnswer, pause, Refused } from "./api.js";
import { Clock } from "./clock.js";
import { h, isTyping, kept, say } from "./dom.js";
import { Form } from "./form.js";
import { fillSettings, keepPageScroll, keepScroll, settings, splitter } from "./reading.js";
import { forget, Saver, send, unsent } from "./saving.js";

const { project } = document.body.dataset;
const stage = document.getElementById("stage");
const notice = document.getElementById("notice");
const saved = document.getElementById("saved");
const progress = document.getElementById("progress");
const far = document.getElementById("far");
const phase = document.getElementById("phase");
const instructions = document.getElementById("instructions");
const reading = document.getElementById("reading");
const path = `/projects/${encodeURIComponent(project)}`;
const BEAT = 60_000;
const ATTENDED = 10 * 60_000;
const TICK = 5000;
const RETURN = 8000; // long enough to read the page, and to press a button that stops it
const PHASES = { training: "Training", qualification: "Qualification", work: "" };

let now = null; // the item on the page: assignment, form, saver, clock, isCorrection
let submitting = false;

// Telling

function waiting(isSo) {
  notice.hidden = !isSo;
  const then = submitting
    ? "Your answer is kept in this browser and handed in as soon as it answers; the next one comes then."
    : "What you do is kept in this browser and sent as soon as it answers; you can go on.";
  notice.textContent = isSo ? `No connection to the server at the moment. ${then}` : "";
}

function showSaved(state, refusal) {
  waiting(state === "waiting");
  saved.dataset.state = state;
  saved.textContent = { saved: "Saved", saving: "Saving…", waiting: "Kept here, not sent yet", refused: "Not saved", held: "Not handed in yet" }[state] ?? "";
  if (state !== "refused") return;
  if (refusal.status === 422 || refusal.status === 413) { tell(refusal.message); return; }
  lost(refusal);
}

function tell(words) {
  const place = document.getElementById("trouble");
  if (!place) { say(words); return; }
  place.textContent = words;
  place.hidden = !words;
}

// A lease that ran out, an annotator who was stopped, a project that is over: there is nothing to save to any more.
function lost(refusal) {
  const { id } = now?.assignment ?? {};
  const title = now?.isCorrection ? "This cannot be changed any more" : "This item has gone back";
  leave();
  if (id) forget(id);
  if (refusal.status === 409) {
    message(title, refusal.message, [button("Go on with the next", next)]);
    // Of a project that is closed nothing comes next.
    standing().then((me) => {
      if (now || me.project.state !== "closed") return;
      if (me.completion) finished(me); else message("This project is closed", "Thank you for your work.");
    }, () => {});
  } else if (refusal.status === 404 || refusal.status === 401) {
    message("You are not known here any more", "Come back with the link that you were given.");
  } else {
    message("Thank you", refusal.message);
  }
}

const button = (words, press, kind = "") => h("button", { type: "button", class: kind, onclick: press }, words);

function message(title, words, actions = []) {
  leave();
  const heading = h("h2", { tabindex: -1 }, title);
  stage.className = "message";
  stage.replaceChildren(h("section", { class: "narrow-form" }, heading, h("p", { dir: "auto" }, words), ...[actions].flat()));
  heading.focus();
}

function leave() {
  if (!now) return;
  now.saver.stop();
  now.clock.stop();
  now = null;
  saved.textContent = "";
  delete saved.dataset.state;
}

// Taking items

const standing = async () => (await insist("GET", `${path}/me`, undefined, waiting)).body;

function showProgress(me) {
  const total = me.total ?? (me.left === null || me.left === undefined ? 0 : me.done + me.left);
  progress.max = total || 1;
  progress.value = total ? me.done : 0;
  progress.hidden = !total;
  far.textContent = total ? `${me.done.toLocaleString("en")} of ${total.toLocaleString("en")} done` : `${me.done.toLocaleString("en")} done`;
  phase.textContent = me.state === "active" ? PHASES[me.phase] ?? "" : "";
}

// Who asks twice gets one item: a second answer would draw it anew over what has been said by then.
let asking = false;
async function next() {
  if (asking) return;
  asking = true;
  leave();
  history.replaceState(null, "", location.pathname);
  try {
    let me = await standing();
    if (["stopped", "excluded", "deleted"].includes(me.state)) {
      message("Thank you", me.reason ?? "You need not do anything more.");
      showProgress(me);
      return;
    }
    // Of a project that is paused or closed nothing is given out, and whoever is done finds the code again.
    if (me.completion && me.project.state !== "open") {
      finished(me);
      showProgress(me);
      return;
    }
    const taken = await insist("POST", `${path}/assignments`, {}, waiting);
    if (taken.status === 204) {
      me = await standing();
      finished(me);
    } else if (taken.body.waiting) wait(taken.body.waiting, taken.after || 15);
    else draw(taken.body);
    showProgress(me);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401 || error.status === 404) location.replace(`/annotate/${encodeURIComponent(project)}`);
    else message(error.status === 403 ? "Not now" : "Something is wrong", error.message, [h("p", {}, button("Look again", next, "quiet"))]);
  } finally {
    asking = false;
  }
}

let waits = 0;
function wait(words, seconds) {
  message("One moment", words, [h("p", { class: "soft" }, "This page looks again by itself.")]);
  const mine = ++waits;
  setTimeout(() => { if (mine === waits && !now) next(); }, seconds * 1000);
}

function finished(me) {
  if (!me.completion && me.state !== "finished") {
    message("Nothing to do at the moment", "Thank you. Others are at work on what is left; some of it may come back.", [h("p", {}, button("Look again", next, "quiet"))]);
    return;
  }
  if (!me.completion) {
    message("There is nothing left to do", "Others have answered all there was before you came. Thank you for your interest; you need not do anything more.", [h("p", {}, button("Look again", next, "quiet"))]);
    return;
  }
  const { code, url } = me.completion;
  const actions = [];
  if (code) {
    actions.push(h("p", {}, "Your completion code:"), h("p", { class: "code" }, h("code", { id: "code" }, code), " ",
      button("Copy", async (event) => { await navigator.clipboard?.writeText(code); event.target.textContent = "Copied"; }, "quiet")));
  }
  if (url && /^https?:\/\//i.test(url)) actions.push(...goingBack(url));
  if (me.done && me.project.state === "open") actions.push(h("p", {}, button("Back to your last answer", goBack, "quiet")));
  actions.push(h("p", { class: "soft" }, `You are ${me.pseudonym} here. To have your answers deleted, tell whoever runs the project this name.`));
  if (me.state === "finished") message("You have done everything. Thank you!", "All your answers are saved.", actions);
  else message("This project is closed. Thank you!", "What you handed in is saved.", actions);
}

// The way back to the site somebody came from: taken by itself after a while, at once, or not at all.
function goingBack(url) {
  const words = h("p", { id: "going", role: "status" }, `This page goes back to where you came from by itself in ${RETURN / 1000} seconds.`);
  const timer = setTimeout(() => { if (words.isConnected) location.assign(url); }, RETURN);
  const stay = button("Stay here", () => { clearTimeout(timer); words.textContent = "This page stays as it is; go back when you like."; stay.remove(); }, "quiet");
  return [words, h("p", { class: "actions" }, h("a", { class: "button", href: url }, "Go back to where you came from"), stay)];
}

// Going back

async function before() {
  const { body: list } = await insist("GET", `${path}/assignments`, undefined, waiting);
  const own = list.filter((one) => one.state === "leased" || one.state === "answered").sort((one, other) => one.place - other.place);
  const at = now ? own.findIndex((one) => one.id === now.assignment.id) : own.length;
  return at > 0 ? own[at - 1] : null;
}

async function goBack() {
  try {
    const found = await before();
    if (!found) { say("This is the first one."); return; }
    await open(found.id);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell(error.message);
  }
}

async function open(id) {
  if (now?.saver.isUnsent && !now.isCorrection) await now.saver.run();
  const { body } = await insist("GET", `/assignments/${id}`, undefined, waiting);
  draw(body);
}

// Drawing

function draw(assignment) {
  leave();
  const isCorrection = assignment.state === "answered" || assignment.answer?.final === true;
  const isClosed = isCorrection && (assignment.item.phase === "training" || Boolean(assignment.feedback));
  const time = kept.read(`clock:${assignment.id}`, {});
  const clock = new Clock({
    active: Math.max(time.active_ms ?? 0, assignment.answer?.active_ms ?? 0), elapsed: Math.max(time.elapsed_ms ?? 0, assignment.answer?.elapsed_ms ?? 0),
  });
  const saver = new Saver(project, assignment, clock, showSaved);
  const values = saver.restored?.values ?? assignment.answer?.values ?? {};
  const form = new Form(assignment.item.form, values, { submit, changed: () => {
    tell("");
    if (isCorrection) { saver.hold(form.values()); showSaved("held"); } else saver.change(form.values());
  } });
  now = { assignment, clock, form, saver, isCorrection, isClosed };
  show(form, assignment);
  if (isClosed) { form.close(); showFeedback(assignment.feedback); }
  if (isCorrection) history.replaceState(null, "", `#${assignment.id}`);
  else if (saver.restored?.final) submit();
  else if (saver.restored) saver.change(values);
  say(`Item ${assignment.place}. ${assignment.item.form.fields[0].label}`);
}

function show(form, assignment) {
  const { isCorrection, isClosed } = now;
  const words = isClosed ? "Go on" : isCorrection ? "Save the correction" : "Submit";
  const hand = h("button", { type: "button", id: "submit", onclick: isClosed ? next : submit }, words, settings.keys && h("kbd", { "aria-hidden": "true" }, "Enter"));
  const back = assignment.place > 1 && button("Back", goBack, "quiet");
  const onwards = isCorrection && !isClosed && button("Leave it as it was", () => { forget(assignment.id); next(); }, "quiet");
  const answers = h("div", { class: "answers", role: "region", "aria-label": "Questions", tabindex: 0 },
    isCorrection && !isClosed && h("p", { class: "note" }, "You have handed this in already; you can correct it for a while."),
    form.answers,
    h("div", { id: "feedback" }), h("p", { class: "problem", id: "trouble", role: "alert", hidden: true }),
    h("div", { class: "hand-in" }, back, onwards, hand));
  stage.className = `work ${form.shape}`;
  keepPageScroll(assignment.id);
  if (!form.reading.length) { stage.replaceChildren(answers); keepScroll(answers, assignment.id); return; }
  const texts = h("div", { class: "reading", role: "region", "aria-label": "What there is to read", tabindex: 0 }, form.reading);
  stage.replaceChildren(texts, ...(form.shape === "beside" ? [splitter(stage)] : []), answers);
  keepScroll(texts, [...form.panels.values()].map((panel) => panel.text).join("\n"));
  keepScroll(answers, assignment.id);
}

// Handing in

async function submit() {
  if (!now || now.isClosed || submitting) return;
  const { form, saver } = now;
  const values = form.settled();
  const problems = form.problems(values);
  if (problems.length) { form.tellAll(problems); return; }
  submitting = true;
  if (!notice.hidden) waiting(true);
  const hand = document.getElementById("submit");
  hand.disabled = true;
  try {
    const answer = await saver.finish(values);
    kept.forget(`clock:${saver.id}`);
    if (now?.saver === saver) {
      if (answer.feedback) { now.isClosed = true; form.close(); showFeedback(answer.feedback); standing().then(showProgress, () => {}); } else await next();
    }
  } catch (error) {
    if (error instanceof NoAnswer) return; // the item was left meanwhile
    if (!(error instanceof Refused)) throw error;
    // Whatever else it is, showSaved has said so.
    if (error.status === 422 && now?.saver === saver) {
      const found = (error.body.problems ?? []).map((one) => (typeof one === "string" ? { field: "", problem: one } : one));
      tell(form.tellAll(found).join(" ") || (found.length ? "" : error.message));
    }
  } finally {
    submitting = false;
    hand.disabled = false;
  }
}

function showFeedback(feedback) {
  const place = document.getElementById("feedback");
  const hand = document.getElementById("submit");
  hand.replaceWith(h("button", { type: "button", id: "submit", onclick: next }, "Go on", settings.keys && h("kbd", { "aria-hidden": "true" }, "Enter")));
  if (!feedback) return;
  const expected = now.form.words(feedback.gold ?? {});
  // Where what is said afterwards names the answer itself, it is not said twice.
  const named = feedback.words?.startsWith("Expected:");
  place.replaceChildren(h("div", { class: `feedback ${feedback.right ? "right" : "wrong"}`, role: "status", tabindex: -1 },
    h("p", {}, h("strong", {}, feedback.right ? "That is right." : "That is not what was expected.")),
    !feedback.right && !named && expected.length > 0 && h("dl", { class: "facts" }, expected.map(([label, words]) => [h("dt", { dir: "auto" }, label), h("dd", { dir: "auto" }, words)])),
    feedback.words && !(named && feedback.right) && h("p", { class: "pre", dir: "auto" }, feedback.words)));
  place.scrollIntoView({ block: "nearest" });
  document.getElementById("submit").focus({ preventScroll: true });
}

// Keys

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  if (event.key === "F1" || (event.key === "?" && settings.keys && !isTyping(document.activeElement))) {
    event.preventDefault();
    instructions.showModal();
    return;
  }
  if (!now) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (now.isClosed) next(); else submit();
    return;
  }
  if (!settings.keys || event.repeat) return;
  const at = document.activeElement;
  if (event.key === "Enter" && !event.shiftKey && !at?.closest("a, button:not([data-passive]), textarea, select, summary, .splitter")) {
    event.preventDefault();
    if (now.isClosed) next(); else submit();
    return;
  }
  if (now.form.key(event)) event.preventDefault();
});

for (const [opener, dialog] of [["open-instructions", instructions], ["open-reading", reading]]) {
  document.getElementById(opener).addEventListener("click", () => dialog.showModal());
  dialog.querySelector("button.close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}

// While it is open

setInterval(() => { if (now && !now.isCorrection) kept.write(`clock:${now.assignment.id}`, now.clock.read()); }, TICK);

setInterval(async () => {
  const mine = now;
  if (!mine || mine.isCorrection || mine.isClosed || mine.saver.isUnsent || !mine.clock.isAttended(ATTENDED)) return;
  try {
    await call("POST", `/assignments/${mine.assignment.id}/heartbeat`, {});
    waiting(false);
  } catch (error) {
    if (now !== mine) return;
    if (error instanceof NoAnswer) waiting(true);
    else if (error instanceof Refused) lost(error);
  }
}, BEAT);

addEventListener("online", () => { if (now?.saver.isUnsent && !now.isCorrection) now.saver.run().catch(() => {}); });
addEventListener("beforeunload", (event) => { if (now?.saver.isUnsent && now.saver.isKept === false) event.preventDefault(); });

// Beginning

// What a closed browser or a server that was gone left unsent goes first: the item may be taken back by that.
async function sendLeft() {
  for (const record of unsent(project)) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await send(record);
        forget(record.id);
        break;
      } catch (error) {
        if (error instanceof Refused) {
          // A draft that the server does not take is for the one who wrote it to mend.
          if (error.status !== 422) forget(record.id);
          if (error.status === 409) say(error.message);
          break;
        }
        waiting(true);
        await pause(Math.min(1000 * 2 ** attempt, 15_000));
      }
    }
    waiting(false);
  }
}

async function begin() {
  fillSettings(reading);
  const seen = `instructions:${project}`;
  if (!kept.read(seen)) { kept.write(seen, true); instructions.showModal(); }
  const asked = location.hash.slice(1);
  if (asked) {
    try { showProgress(await standing()); await open(asked); return; } catch (error) { if (!(error instanceof Refused)) throw error; }
  }
  await sendLeft();
  await next();
}

begin();
