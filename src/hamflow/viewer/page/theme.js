// Light or dark: as the system says, until the button says otherwise.

export function setUpTheme(button, changed) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => {
    // A page that was opened as a file may not have a storage.
    try { return localStorage.getItem("hamflow-theme"); } catch { return null; }
  };
  const apply = (theme) => {
    if (theme) root.dataset.theme = theme;
    changed();
  };
  button.addEventListener("click", () => {
    const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("hamflow-theme", next); } catch { /* only for this visit, then */ }
    apply(next);
  });
  dark.addEventListener("change", () => changed());
  apply(remembered());
}
