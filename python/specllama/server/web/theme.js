// The colour scheme that the user has chosen. It is a separate script in the head, so that the page
// never appears in another scheme.

"use strict";

{
  const KEY = "specllama.theme";
  const root = document.documentElement;
  const read = () => {
    try {
      return localStorage.getItem(KEY) ?? "system";
    } catch {
      return "system";  // the browser stores nothing
    }
  };
  root.dataset.theme = read();
  addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("theme");
    choice.value = root.dataset.theme;
    choice.addEventListener("change", () => {
      root.dataset.theme = choice.value;
      try {
        localStorage.setItem(KEY, choice.value);
      } catch { /* as above */ }
    });
  });
}
