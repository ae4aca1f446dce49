// Loaded before the page is drawn, so that a chosen theme does not flash; not a module for that reason.
(() => {
  const kept = () => {
    try { return localStorage.getItem("theme") ?? ""; } catch { return ""; }
  };
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  apply(kept());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const words = { "": "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
    const next = { "": "dark", dark: "light", light: "" };
    const show = () => { button.textContent = words[kept()] ?? words[""]; };
    button.hidden = false;
    show();
    button.addEventListener("click", () => {
      const theme = next[kept()] ?? "";
      try { localStorage.setItem("theme", theme); } catch { /* not kept, then */ }
      apply(theme);
      show();
    });
  });
})();
