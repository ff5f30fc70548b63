// The name that answers are recorded under: the token's, or what a person says once and the browser keeps.
import { state } from "./server.js";

const KEY = "toolcrib-name";
let typed = "";

export function myName() {
  if (state.name) return state.name;
  try { return localStorage.getItem(KEY) || typed; } catch { return typed; }
}

export function drawName() {
  const button = document.getElementById("who");
  button.textContent = myName() || "Your name";
  button.disabled = Boolean(state.name);
}

/** Ask who it is; returns the name, empty when the person would rather not say. */
export function askName() {
  const dialog = document.getElementById("name-dialog");
  const form = document.getElementById("name-form");
  const field = document.getElementById("name-field");
  field.value = myName();
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    const done = new AbortController();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const name = field.value.trim();
      if (!name) return;
      typed = name;
      try { localStorage.setItem(KEY, name); } catch { /* kept for as long as the page is open */ }
      drawName();
      dialog.close("saved");
    }, { signal: done.signal });
    document.getElementById("name-cancel").addEventListener("click", () => dialog.close(""), { signal: done.signal });
    dialog.addEventListener("close", () => {
      done.abort();
      resolve(dialog.returnValue === "saved" ? myName() : "");
      dialog.returnValue = "";
    }, { signal: done.signal });
  });
}
