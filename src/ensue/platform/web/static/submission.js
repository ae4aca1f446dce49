// Follow a submission that waits: say its place, and load the page again when it is done.
const state = document.getElementById("state");

async function look() {
  if (document.hidden) return;
  let found;
  try {
    const answer = await fetch(`/api/v1/submissions/${state.dataset.id}`);
    if (!answer.ok) return;
    found = await answer.json();
  } catch { return; }
  if (found.position === null || found.position === undefined) { location.reload(); return; }
  const words = found.position === 0 ? "It is being graded now." : `It waits in the queue, at place ${found.position}.`;
  if (!state.textContent.startsWith(words)) state.textContent = words;
}

if (state) setInterval(look, 1500);
