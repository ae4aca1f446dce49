// Entering a project: who was here before goes on at once; others agree first.
import { call, NoAnswer, Refused } from "./api.js";
import { kept } from "./dom.js";

const { project } = document.body.dataset;
const form = document.getElementById("consent");
const trouble = document.getElementById("trouble");
const query = new URLSearchParams(location.search);
const external = query.get("PROLIFIC_PID") ?? query.get("worker_id") ?? query.get("workerId") ?? "";
const work = `/annotate/${encodeURIComponent(project)}/work`;
const mark = `entered:${project}`;

function tell(words) {
  trouble.textContent = words;
  trouble.hidden = !words;
}

async function enter() {
  const body = { key: query.get("key") ?? "", consent: true };
  const ids = { external_id: external, study_id: query.get("STUDY_ID"), session_id: query.get("SESSION_ID") };
  for (const [name, value] of Object.entries(ids)) if (value) body[name] = value;
  await call("POST", `/projects/${encodeURIComponent(project)}/enter`, body);
  kept.write(mark, external);
  location.assign(work);
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const send = form.querySelector("button");
  send.disabled = true;
  tell("");
  try {
    await enter();
  } catch (error) {
    send.disabled = false;
    if (error instanceof Refused) tell(error.message);
    else if (error instanceof NoAnswer) tell("The server does not answer at the moment; try again.");
    else throw error;
  }
});

async function begin() {
  if (!form) return;
  try {
    await call("GET", `/projects/${encodeURIComponent(project)}/me`);
    // The same browser may be used by another worker, who is to be asked.
    if (!external || kept.read(mark) === external) { location.replace(work); return; }
  } catch (error) {
    if (!(error instanceof Refused || error instanceof NoAnswer)) throw error;
  }
  form.hidden = false;
}

begin();
