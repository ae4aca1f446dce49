// Keep the progress of an annotation project up to date while somebody looks at it, and copy its links.
const live = document.getElementById("live");

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("live");
    if (found && found.innerHTML !== live.innerHTML) live.replaceChildren(...found.childNodes);
    // A table in which somebody is about to act is left alone.
    const [people, now] = [document.getElementById("people"), page.getElementById("people")];
    if (people && now && !people.contains(document.activeElement) && !people.querySelector("details[open]")) people.replaceChildren(...now.childNodes);
  } catch { /* the next time, then */ }
}

if (live) setInterval(look, 5000);

for (const button of document.querySelectorAll("button[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.setAttribute("aria-label", `Copy: ${field.labels[0].textContent}`);
  button.addEventListener("click", async () => {
    field.select();
    try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 3000);
  });
}
