// The state of the server on the page: its models and its load.

import * as api from "./api.js";
import * as settings from "./settings.js";
import {allowImages} from "./attachments.js";
import {at} from "./dom.js";

const LOAD_MS = 2000;  // between two requests for the load

let model = null;
let showMode = () => {};

/** Ask the server for its models, and show the chosen one. Return whether it sees images. */
async function askForModels() {
  let models;
  try {
    models = await api.models(at("key").value);
  } catch (error) {
    at("model").textContent = error.message;
    return false;
  }
  if (models === null) {
    model = null;
    at("model").textContent = "API key required";
    settings.open(at("key"));
    return false;
  }
  const chosen = at("models").value;
  model = models.find(one => one.id === chosen) ?? models[0];
  at("models").hidden = models.length === 1;
  at("models").replaceChildren(
    ...models.map(one => new Option(one.id, one.id, false, one === model)));
  // A model's details are known after it was loaded once.
  const {description, n_ctx, chat} = model.meta ?? {chat: true};
  at("model").textContent = description === undefined ? `${model.id} · not loaded`
    : `${model.id} · ${description} · context ${n_ctx} tokens`;
  at("model").title = at("model").textContent;
  if (n_ctx) at("context").max = n_ctx;
  for (const one of document.getElementsByName("mode")) {
    const isChat = one.value !== "completion";
    one.disabled = isChat && !chat;
    one.parentElement.title = one.disabled ? "The model has no chat template." : "";
    if (!isChat && !chat) one.checked = true;
  }
  showMode();
  return description !== undefined && await readProperties(model.id);
}

const connect = () => allowImages(askForModels());

/** Ask whether the model can answer two requests at once. Return whether it sees images. */
async function readProperties(id) {
  const {modalities, total_slots} = await api.properties(id, at("key").value).catch(() => ({}));
  at("at-once").checked = at("at-once").checked && total_slots > 1;
  at("at-once").disabled = !(total_slots > 1);
  return modalities?.vision === true;
}

/** Show the server's load, repeatedly. */
async function showLoad() {
  try {
    const {running, waiting} = await api.load();
    at("load").hidden = running + waiting === 0;
    at("load").textContent = `${running} running, ${waiting} waiting`;
    if (model === null && at("model").textContent === api.SILENT) await connect();
  } catch (error) {
    at("model").textContent = error.message;
    model = null;
  }
  setTimeout(showLoad, LOAD_MS);
}

/** Begin. @param {() => void} action called when the available modes are known */
export function start(action) {
  showMode = action;
  at("key").addEventListener("change", connect);
  at("models").addEventListener("change", connect);
  connect();
  showLoad();
}
