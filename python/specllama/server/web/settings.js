// The settings of the page: how answers are generated, and what to do.

import * as store from "./store.js";

export const at = id => document.getElementById(id);
const NUMBERS = ["max_tokens", "temperature", "top_k", "top_p", "min_p", "seed"];
const KEPT = [...NUMBERS, "stop", "system"];

/** "chat" or "completion". */
export const mode = () => document.querySelector("[name=mode]:checked").value;

/** Return the fields of a request that the settings say. */
export function wanted() {
  const body = {temperature: 0};
  for (const name of NUMBERS) if (at(name).value !== "") body[name] = Number(at(name).value);
  if (at("stop").value) body.stop = at("stop").value;
  if (at("models").value) body.model = at("models").value;
  return body;
}

/** Return what is wrong with the first invalid setting, and show that; "": all are valid. */
export function check() {
  const wrong = at("fields").querySelector("input:invalid");
  if (wrong === null) return "";
  at("settings").open = true;
  wrong.focus();
  return `${wrong.parentElement.textContent.trim()}: ${wrong.validationMessage}`;
}

const showTint = () => { document.body.dataset.tint = at("tint").checked ? "on" : "off"; };

/** Show the settings as they are stored. */
export function show() {
  const values = store.settings();
  for (const name of KEPT) at(name).value = values[name] ?? "";
  at("tint").checked = values.tint ?? true;
  document.querySelector(`[value=${values.mode ?? "chat"}]`).checked = true;
  showTint();
}

function keep() {
  const values = Object.fromEntries(KEPT.map(name => [name, at(name).value]));
  store.keepSettings({...values, tint: at("tint").checked, mode: mode()});
  showTint();
}
at("settings").addEventListener("input", keep);
at("modes").addEventListener("change", keep);
