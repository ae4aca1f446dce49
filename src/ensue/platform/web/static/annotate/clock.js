// Time on a task by a clock that is never set back: what comes later than a minute after the last sign of work, or
// while the page is hidden, does not count.
const IDLE = 60_000;
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "input", "touchstart"];

export class Clock {
  constructor({ active = 0, elapsed = 0 } = {}) {
    this.begun = this.last = performance.now();
    this.active = active;
    this.before = elapsed;
    this.hidden = document.hidden;
    this.heard = () => this.touch();
    this.turned = () => { this.touch(); this.hidden = document.hidden; };
    for (const sign of SIGNS) addEventListener(sign, this.heard, { capture: true, passive: true });
    document.addEventListener("visibilitychange", this.turned);
  }

  touch() {
    const now = performance.now();
    this.active += this.hidden ? 0 : Math.min(now - this.last, IDLE);
    this.last = now;
  }

  read() {
    const now = performance.now();
    const active = this.active + (this.hidden ? 0 : Math.min(now - this.last, IDLE));
    return { active_ms: Math.round(active), elapsed_ms: Math.round(this.before + now - this.begun) };
  }

  // Whether there was a sign of work of late.
  isAttended(within) { return !this.hidden && performance.now() - this.last < within; }

  stop() {
    for (const sign of SIGNS) removeEventListener(sign, this.heard, { capture: true });
    document.removeEventListener("visibilitychange", this.turned);
  }
}
