// Upload with a progress bar; problems are listed at once. Without this file the form is sent as it is.
// A form says where to send it (data-to); one that is done is answered 201 with an id or a location.
const form = document.getElementById("upload");
const file = document.getElementById("file");
const folder = document.getElementById("folder");
const drop = document.getElementById("drop");
const box = document.getElementById("problems");
const words = document.getElementById("problem-words");
const list = document.getElementById("problem-list");
const sending = document.getElementById("sending");
const bar = document.getElementById("bar");
const said = document.getElementById("sending-words");
const send = document.getElementById("send");

function tell(sentence, problems = []) {
  words.textContent = sentence;
  list.replaceChildren(...problems.map((one) => {
    const item = document.createElement("li");
    if (one.file) {
      const name = document.createElement("code");
      name.textContent = one.file;
      item.append(name, one.line ? `, line ${one.line}: ` : ": ");
    }
    item.append(one.problem);
    return item;
  }));
  list.hidden = !problems.length;
  box.hidden = !sentence;
  sending.hidden = true;
  send.disabled = false;
  if (sentence) { box.scrollIntoView({ block: "center" }); box.focus({ preventScroll: true }); }
}

function unfit(chosen) {
  if (!chosen) return "";
  const suffix = form.dataset.suffix;
  const most = Number(form.dataset.most);
  if (suffix && !chosen.name.toLowerCase().endsWith(suffix)) return `${chosen.name} is no ${suffix} file, which this board takes.`;
  if (chosen.size > most) return `${chosen.name} is larger than ${Math.round(most / 1e6)} MB, the most taken here.`;
  if (!chosen.size) return `${chosen.name} is empty.`;
  return "";
}

// One or the other is sent.
file?.addEventListener("change", () => { if (folder && file.files[0]) folder.value = ""; tell(unfit(file.files[0])); });
folder?.addEventListener("change", () => { if (folder.files[0]) file.value = ""; tell(""); });

if (drop) {
  document.getElementById("drop-words").hidden = false;
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    file.dispatchEvent(new Event("change"));
  });
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const wrong = unfit(file.files[0]);
  if (wrong) { tell(wrong); return; }
  const values = new FormData(form);
  const [token, key] = [values.get("csrf"), values.get("key")];
  values.delete("csrf");
  values.delete("key");
  const request = new XMLHttpRequest();
  request.open("POST", form.dataset.to);
  request.setRequestHeader("X-CSRF-Token", token);
  if (key) request.setRequestHeader("Idempotency-Key", key);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  request.upload.addEventListener("progress", (progress) => {
    if (!progress.lengthComputable) return;
    bar.value = progress.loaded / progress.total;
    said.textContent = progress.loaded < progress.total ? `Sent ${Math.round(100 * bar.value)} %.` : "Sent; it is being checked.";
  });
  request.addEventListener("load", () => {
    const answer = request.response ?? {};
    if (request.status === 201) { location.assign(answer.location ?? `/submissions/${answer.id}`); return; }
    tell(answer.error ?? `The server answered ${request.status}; try again.`, answer.problems ?? []);
  });
  request.addEventListener("error", () => tell("The connection broke; send it again, it will count once."));
  tell("");
  sending.hidden = false;
  send.disabled = true;
  bar.value = 0;
  said.textContent = "Sending.";
  request.send(values);
});
