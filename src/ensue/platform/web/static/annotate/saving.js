// Saving: every change is kept in this browser at once and sent soon after, again and again until the server has it.
import { call, NoAnswer, pause, waitOf } from "./api.js";
import { kept } from "./dom.js";

const SOON = 400;
const KEPT_DAYS = 30;

const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const keyOf = (id) => `answer:${id}`;

// What this browser has and the server has not, of one project, oldest first.
export function unsent(project) {
  const found = kept.keys("answer:").map((key) => ({ key, record: kept.read(key) }));
  for (const { key, record } of found) if (!record || Date.now() - record.at > KEPT_DAYS * 86_400_000) kept.forget(key);
  return found.map(({ record }) => record).filter((record) => record?.project === project && record.isUnsent && !record.isHeld).sort((one, other) => one.at - other.at);
}

export const forget = (id) => kept.forget(keyOf(id));

export const send = (record, options = {}) =>
  call("PUT", `/assignments/${record.id}/answer`, {
    values: record.values, final: record.final, seq: record.seq, active_ms: record.active_ms, elapsed_ms: record.elapsed_ms,
  }, { key: record.key, ...options });

export class Saver {
  // `show` is told "saved", "saving", "waiting" (no connection) or "refused" with the refusal.
  constructor(project, assignment, clock, show) {
    Object.assign(this, { project, clock, show, id: assignment.id });
    const local = kept.read(keyOf(this.id));
    const saved = assignment.answer;
    this.seq = Math.max(saved?.seq ?? 0, local?.seq ?? 0);
    // A copy that was never sent is newer than what the server has; one that was is not kept apart.
    this.restored = local?.isUnsent && local.seq > (saved?.seq ?? 0) ? local : null;
    this.record = null;
    this.timer = 0;
    this.sending = null;
    this.stopped = false;
    this.isHandedIn = false;
    this.leave = () => this.flush();
    addEventListener("pagehide", this.leave);
  }

  take(values, final, isHeld = false) {
    // By the time, so that of two pages of one person the one that says something last is heard.
    this.seq = Math.max(this.seq + 1, Date.now());
    this.record = { id: this.id, project: this.project, values, final, seq: this.seq, key: newKey(), ...this.clock.read(), isUnsent: true, isHeld, at: Date.now() };
    this.isKept = kept.write(keyOf(this.id), this.record);
  }

  change(values) {
    this.take(values, false);
    this.show("saving");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run().catch(() => {}), SOON);
  }

  // Keep in this browser alone: a correction is sent when it is whole.
  hold(values) { this.take(values, false, true); }

  // Hand in; return what the server says of it.
  async finish(values) {
    clearTimeout(this.timer);
    this.take(values, true);
    this.show("saving");
    for (;;) {
      const answer = await this.run();
      if (this.isHandedIn) return answer;
      if (this.stopped) throw new NoAnswer("The item is left.");
      // Another page of the same person had saved more; what is handed in comes after it.
      this.seq = Math.max(this.seq, answer?.seq ?? 0);
      if (!this.record) this.take(values, true);
    }
  }

  run() {
    this.sending ??= this.sendAll().finally(() => { this.sending = null; });
    return this.sending;
  }

  async sendAll() {
    let last = null;
    for (let attempt = 0; this.record && !this.stopped; ) {
      const record = this.record;
      try {
        last = (await send(record)).body;
        attempt = 0;
        this.seq = Math.max(this.seq, last.seq ?? 0);
        if (this.record === record) {
          this.record = null;
          kept.forget(keyOf(this.id));
          // The answer to one that was overtaken has the number of the one that counts.
          this.isHandedIn = record.final && last.seq === record.seq;
          if (this.isHandedIn) this.stop();
          this.show("saved");
        }
      } catch (error) {
        if (!(error instanceof NoAnswer)) {
          if (this.record === record) this.record = null;
          this.show("refused", error);
          throw error;
        }
        this.show("waiting");
        await pause(waitOf(attempt, error.after));
        attempt += 1;
      }
    }
    return last;
  }

  // The page goes away: send what there is without waiting; what is too large for that is kept here.
  flush() {
    if (!this.record || this.record.isHeld || this.stopped) return;
    send(this.record, { leaving: true }).catch(() => {});
  }

  get isUnsent() { return this.record !== null; }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    removeEventListener("pagehide", this.leave);
  }
}
