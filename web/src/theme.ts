/** Light or dark: as the system says, unless the person chose one. */

export type Theme = "system" | "light" | "dark";

const KEY = "omnigraph.theme";

export function readTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function storeTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme(theme);
}

/** The theme that a switch leads to: the one that is not shown. */
export function nextTheme(): Theme {
  const chosen = readTheme();
  const isDark = chosen === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
  return isDark ? "light" : "dark";
}
