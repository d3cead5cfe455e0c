// The settings of the page: options of generations, and the mode.

import * as storage from "./storage.js";
import {at} from "./dom.js";

const NUMBERS = ["max_tokens", "temperature", "top_k", "top_p", "min_p", "seed"];
const KEPT = [...NUMBERS, "stop", "system"];

/** "chat", "compare" or "completion". */
export const mode = () => document.querySelector("[name=mode]:checked").value;

/** Return the request's fields for the settings. */
export function wanted() {
  const body = {temperature: 0};
  for (const name of NUMBERS) if (at(name).value !== "") body[name] = Number(at(name).value);
  if (at("stop").value) body.stop = at("stop").value;
  if (at("models").value) body.model = at("models").value;
  return body;
}

/** The messages of a request, with the system message first. @param {object[]} messages */
export function withSystem(messages) {
  const system = at("system").value;
  return system ? [{role: "system", content: system}, ...messages] : messages;
}

/** Throw an Error that names the first invalid setting, and show this setting. */
export function check() {
  const wrong = at("settings").querySelector("input:invalid");
  if (wrong === null) return;
  open(wrong);
  throw Error(`${wrong.parentElement.textContent.trim()}: ${wrong.validationMessage}`);
}

/** Show the settings. @param {HTMLElement} [field] the setting to focus */
export function open(field) {
  if (!at("settings").open) at("settings").showModal();
  field?.focus();
}

const showTint = () => { document.body.dataset.tint = at("tint").checked ? "on" : "off"; };

/** Show the stored settings. */
export function show() {
  const values = storage.settings();
  for (const name of KEPT) at(name).value = values[name] ?? "";
  at("tint").checked = values.tint ?? true;
  document.querySelector(`[name=mode][value=${values.mode ?? "chat"}]`).checked = true;
  showTint();
}

function keep() {
  const values = Object.fromEntries(KEPT.map(name => [name, at(name).value]));
  storage.keepSettings({...values, tint: at("tint").checked, mode: mode()});
  showTint();
}
at("settings").addEventListener("input", keep);
at("modes").addEventListener("change", keep);
at("show-settings").addEventListener("click", () => open());
at("settings").addEventListener("click", event => {
  if (event.target === at("settings")) at("settings").close();  // a click outside
});
