// Follow a text that is tried: say its place and how far it is, and load the page again when it is over.
const state = document.getElementById("state");
const bar = document.getElementById("bar");

function words(found) {
  if (found.state === "running") {
    const far = found.total ? ` ${found.done.toLocaleString("en")} of ${found.total.toLocaleString("en")} ${found.unit}.` : "";
    return `It is being read now.${far}`;
  }
  if (!found.attended) return "No worker with this model is connected at the moment; it waits for one to come back.";
  return found.place === 1 ? "It is next." : `It waits in the queue, at place ${found.place}.`;
}

async function look() {
  let found;
  try {
    const answer = await fetch(`/api/v1/tries/${state.dataset.id}`);
    if (answer.status === 404) { location.reload(); return; }
    if (!answer.ok) throw new Error(answer.status);
    found = await answer.json();
  } catch {
    // A server that is started anew does not know the text, and the page then says so.
    state.textContent = "The server does not answer at the moment; trying again.";
    setTimeout(look, 3000);
    return;
  }
  if (found.state === "done" || found.state === "failed") { location.reload(); return; }
  const said = words(found);
  if (state.textContent !== said) state.textContent = said;
  if (found.total) { bar.max = found.total; bar.value = found.done; } else bar.removeAttribute("value");
  setTimeout(look, 1000);
}

if (state) setTimeout(look, 500);
