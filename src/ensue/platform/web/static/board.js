// Sorting, filtering and paging without loading the page anew, and rows that open. The server does the sorting.
const place = document.getElementById("standing");
const status = document.getElementById("status");
let asked = 0;

async function show(address, focus) {
  const mine = ++asked;
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (mine !== asked) return;
  if (!answer.ok) { location.assign(address); return; }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("standing");
  if (!found || mine !== asked) { if (!found) location.assign(address); return; }
  const left = place.querySelector(".scroll")?.scrollLeft ?? 0;
  place.replaceChildren(...found.childNodes);
  enhance();
  const scroll = place.querySelector(".scroll");
  if (scroll) scroll.scrollLeft = left;
  status.textContent = page.getElementById("status").textContent;
  // The links of the chart keep what is filtered and sorted.
  document.querySelector(".chart nav")?.replaceChildren(...page.querySelector(".chart nav")?.childNodes ?? []);
  history.replaceState(null, "", address);
  if (focus) place.querySelector(focus)?.focus();
}

function addressOf(form, submitter) {
  const values = new FormData(form);
  if (submitter?.name) values.set(submitter.name, submitter.value);
  const query = new URLSearchParams([...values].filter(([, value]) => value !== ""));
  const words = query.toString();
  return location.pathname + (words ? `?${words}` : "");
}

function enhance() {
  for (const button of place.querySelectorAll(".expand")) button.hidden = false;
}

place.addEventListener("click", (event) => {
  const button = event.target.closest(".expand");
  if (button) {
    const row = document.getElementById(button.getAttribute("aria-controls"));
    row.hidden = !row.hidden;
    button.setAttribute("aria-expanded", String(!row.hidden));
    return;
  }
  const link = event.target.closest(".pages a");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    show(link.getAttribute("href"), ".scroll");
  }
});

place.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.classList.contains("sort")) return;
  event.preventDefault();
  show(addressOf(event.target, button), `[data-key="${CSS.escape(button.dataset.key)}"]`);
});

const filter = document.getElementById("filter");
let timer = 0;
filter?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => show(addressOf(filter.form)), 150);
});
filter?.form.addEventListener("submit", (event) => {
  event.preventDefault();
  show(addressOf(filter.form));
});

enhance();
