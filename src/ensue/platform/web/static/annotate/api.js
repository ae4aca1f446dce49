// Calls of the server: a call that got no answer can be told from one that was refused.
export class NoAnswer extends Error {}

export class Refused extends Error {
  constructor(status, body, after) {
    super(body?.error ?? `The server answered ${status}.`);
    this.status = status;
    this.body = body ?? {};
    this.after = after;
  }
}

const PATIENCE = 20_000;
let token = document.body.dataset.csrf;

// The token of this page's forms ends with the browser's session; the page itself has the new one.
async function renewToken() {
  const page = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  const found = new DOMParser().parseFromString(await page.text(), "text/html").body.dataset.csrf;
  if (!page.ok || !found || found === token) return false;
  token = found;
  return true;
}

async function ask(method, path, body, key, leaving) {
  const headers = { Accept: "application/json", "X-CSRF-Token": token };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE);
  try {
    return await fetch(`/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: stop.signal, keepalive: leaving });
  } finally {
    clearTimeout(timer);
  }
}

// Return {status, body, after}; throw NoAnswer where it is worth trying again, Refused where it is not.
export async function call(method, path, body, { key = "", leaving = false } = {}) {
  let answer;
  let found = null;
  try {
    answer = await ask(method, path, body, key, leaving);
    if (answer.status === 403 && !leaving && (await answer.clone().text()).includes("out of date") && (await renewToken())) {
      answer = await ask(method, path, body, key, leaving);
    }
    const words = await answer.text();
    found = words ? JSON.parse(words) : null;
  } catch (error) {
    throw new NoAnswer(String(error));
  }
  const after = Number(answer.headers.get("Retry-After")) || 0;
  if (answer.status >= 500 || answer.status === 429 || answer.status === 408) throw Object.assign(new NoAnswer(found?.error ?? ""), { after });
  if (!answer.ok) throw new Refused(answer.status, found, after);
  return { status: answer.status, body: found, after };
}

export const pause = (milliseconds) => new Promise((done) => {
  const timer = setTimeout(done, milliseconds);
  addEventListener("online", () => { clearTimeout(timer); done(); }, { once: true });
});

// How long to wait before the next attempt: longer each time, never long, and not all at the same moment.
export const waitOf = (attempt, after = 0) => Math.max(after * 1000, Math.min(1000 * 2 ** attempt, 15_000) * (0.75 + Math.random() / 2));

// Call until there is an answer; `waiting` is told whether there is none at the moment.
export async function insist(method, path, body, waiting) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const found = await call(method, path, body);
      waiting(false);
      return found;
    } catch (error) {
      if (!(error instanceof NoAnswer)) { waiting(false); throw error; }
      waiting(true);
      await pause(waitOf(attempt, error.after));
    }
  }
}
