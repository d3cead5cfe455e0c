// The page: a conversation, or the continuation of a text.

import * as api from "./api.js";
import * as store from "./store.js";
import {Answer, copy, tool} from "./answer.js";

const at = id => document.getElementById(id);
const NUMBERS = ["max_tokens", "temperature", "top_k", "top_p", "min_p", "seed"];
const KEPT = [...NUMBERS, "stop", "system"];
const COMPLETION_TOKENS = 256;

let chat = store.fresh();
let leaving = null;  // aborts the running request
let model = null;

const mode = () => document.querySelector("[name=mode]:checked").value;

// Settings

function wanted() {
  const body = {temperature: 0};
  for (const name of NUMBERS) if (at(name).value !== "") body[name] = Number(at(name).value);
  if (at("stop").value) body.stop = at("stop").value;
  return body;
}

function showSettings() {
  const values = store.settings();
  for (const name of KEPT) at(name).value = values[name] ?? "";
  at("tint").checked = values.tint ?? true;
  document.body.dataset.tint = at("tint").checked ? "on" : "off";
}

at("settings").addEventListener("change", () => {
  const values = Object.fromEntries(KEPT.map(name => [name, at(name).value]));
  store.keepSettings({...values, tint: at("tint").checked});
  document.body.dataset.tint = at("tint").checked ? "on" : "off";
});

// Conversations

function showChats() {
  at("chats").replaceChildren(...store.chats().map(one => {
    const item = document.createElement("li");
    const name = store.text(one.turns[0]).trim().slice(0, 80) || "…";
    const open = tool(name, () => { if (!leaving) openChat(one); });
    open.className = "open";
    open.setAttribute("aria-current", String(one.id === chat.id));
    const gone = tool("✕", () => {
      if (leaving || !confirm(`Delete “${name}”?`)) return;
      store.forget(one);
      if (one.id === chat.id) openChat(store.fresh());
      else showChats();
    });
    gone.className = "delete";
    gone.setAttribute("aria-label", `Delete ${name}`);
    item.append(open, gone);
    return item;
  }));
}

function openChat(one) {
  chat = one;
  if (!wide.matches) at("past").open = false;
  at("turns").replaceChildren(...chat.turns.map((turn, i) =>
    turn.role === "user" ? userTurn(i) : new Answer(item("answer"), null, turn.parts).element));
  showLast();
  showChats();
  at("welcome").hidden = chat.turns.length > 0;
  at("answers").scrollTop = at("answers").scrollHeight;
  if (!touch.matches) at("prompt").focus();  // on touch screens the keyboard would open
}

function item(who) {
  const made = document.createElement("li");
  made.className = who;
  made.setAttribute("aria-label", who === "user" ? "You" : "The model");
  return made;
}

function userTurn(index) {
  const made = item("user");
  const text = document.createElement("div");
  text.className = "text";
  text.textContent = store.text(chat.turns[index]);
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(
    tool("Copy", button => copy(text.textContent, button)),
    tool("Edit", () => { if (!leaving) at("prompt").value = backTo(index); at("prompt").focus(); }));
  made.append(text, tools);
  return made;
}

/** Cut the conversation before a message of the user's, and return the message's text. */
function backTo(index) {
  const text = store.text(chat.turns[index]);
  chat.turns.length = index;
  while (at("turns").children.length > index) at("turns").lastChild.remove();
  if (index) store.keep(chat);
  else store.forget(chat);
  showLast();
  showChats();
  return text;
}

/** Give the last answer a button that generates it again. */
function showLast() {
  at("turns").querySelector(".again")?.remove();
  const last = chat.turns.length - 1;
  if (leaving || chat.turns[last]?.role !== "assistant") return;
  const again = tool("Again", () => { if (!leaving) run(() => converse(backTo(last - 1))); });
  again.className = "again";
  at("turns").lastChild.querySelector(".tools").insertBefore(
    again, at("turns").lastChild.querySelector(".figures"));
}

// Generating

async function converse(text) {
  chat.turns.push({role: "user", parts: [[text, false]]});
  at("turns").append(userTurn(chat.turns.length - 1));
  at("welcome").hidden = true;
  const system = at("system").value;
  const messages = chat.turns.map(turn => ({role: turn.role, content: store.text(turn)}));
  if (system) messages.unshift({role: "system", content: system});
  const answer = new Answer(item("answer"), null);
  at("turns").append(answer.element);
  const turn = {role: "assistant", parts: answer.parts};
  chat.turns.push(turn);
  try {
    await fill(answer, {...wanted(), messages});
  } finally {
    if (answer.said) store.keep(chat);
    else {  // put the user's message back, so that it is not lost
      const again = backTo(chat.turns.length - 2);
      at("prompt").value ||= again;
    }
    showChats();
  }
}

async function complete(prompt) {
  at("welcome").hidden = true;
  const answer = new Answer(at("completion"), prompt);
  const more = tool("Take over", () => { at("prompt").value = prompt + answer.said; });
  answer.tools.insertBefore(more, answer.figures);
  await fill(answer, {max_tokens: COMPLETION_TOKENS, ...wanted(), prompt});
}

/** Fill an answer from a generation. If the view is at the end, keep it there. */
async function fill(answer, body) {
  const view = at("answers");
  let following = true;
  const follow = () => { if (following) view.scrollTop = view.scrollHeight; };
  const look = () => {
    following = view.scrollHeight - view.scrollTop - view.clientHeight < 60;
  };
  answer.ondraw = follow;
  answer.element.classList.add("busy");
  follow();
  view.addEventListener("scroll", look);
  try {
    for await (const event of api.generate(body, at("key").value, leaving.signal))
      answer.take(event);
    if (!answer.tokens) throw Error("The model ended its answer before it began.");
    at("status").textContent = `Answered: ${answer.took().join(", ")}`;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
    answer.stopped = true;
  } finally {
    view.removeEventListener("scroll", look);
    answer.element.classList.remove("busy");
    answer.draw();
    answer.ondraw = null;
  }
}

/** Do some work, one at a time (see `leaving`), and show its error, if any. */
async function run(work) {
  leaving = new AbortController();
  at("error").textContent = "";
  at("go").hidden = true;
  at("end").hidden = false;
  showLast();
  try {
    await work();
  } catch (error) {
    at("error").textContent = error.message;
  }
  leaving = null;
  at("go").hidden = false;
  at("end").hidden = true;
  showLast();
}

at("form").addEventListener("submit", submitted => {
  submitted.preventDefault();
  const text = at("prompt").value;
  if (leaving || !text.trim()) return;
  if (mode() === "chat") {
    at("prompt").value = "";
    run(() => converse(text));
  } else run(() => complete(text));
});
at("end").addEventListener("click", () => leaving?.abort());
at("fresh").addEventListener("click", () => { if (!leaving) openChat(store.fresh()); });
document.addEventListener("keydown", key => { if (key.key === "Escape") leaving?.abort(); });

// Enter sends a message, as in other chats. It does not send a text to continue, which may need
// line breaks, and sends nothing on touch screens, which have the button.
const touch = matchMedia("(pointer: coarse)");
at("prompt").addEventListener("keydown", key => {
  if (key.key !== "Enter" || key.isComposing) return;
  const sends = key.ctrlKey || key.metaKey || (mode() === "chat" && !key.shiftKey && !touch.matches);
  if (!sends) return;
  key.preventDefault();
  at("form").requestSubmit();
});

// Modes and the server

function showMode() {
  const chatting = mode() === "chat";
  document.body.dataset.mode = mode();
  at("go").textContent = chatting ? "Send" : "Generate";
  at("prompt").placeholder = chatting ? "Ask something" : "A text to continue";
  at("keys").textContent = chatting
    ? "Enter sends, Shift+Enter begins a line, Esc stops" : "Ctrl+Enter generates, Esc stops";
  at("max_tokens").placeholder = chatting ? "all" : COMPLETION_TOKENS;
  at("welcome").hidden = at(chatting ? "turns" : "completion").children.length > 0;
}
at("modes").addEventListener("change", showMode);

async function connect() {
  try {
    model = await api.model(at("key").value);
  } catch (error) {
    at("model").textContent = error.message;
    return;
  }
  if (model === null) {
    at("model").textContent = "an API key is needed";
    at("settings").open = true;
    at("key").focus();
    return;
  }
  const {description, n_ctx} = model.meta;
  at("model").textContent = `${model.id} · ${description} · ${n_ctx} tokens of context`;
  const [chatting, completing] = document.getElementsByName("mode");
  chatting.disabled = !model.meta.chat;
  chatting.parentElement.title = model.meta.chat ? "" : "The model has no chat template.";
  if (!model.meta.chat) completing.checked = true;
  showMode();
}
at("key").addEventListener("change", connect);

async function look() {
  try {
    const {running, waiting} = await api.load();
    at("load").hidden = running + waiting === 0;
    at("load").textContent = `${running} at work, ${waiting} waiting`;
    if (model === null && at("model").textContent === "The server does not answer.") connect();
  } catch (error) {
    at("model").textContent = error.message;
    model = null;
  }
  setTimeout(look, 2000);
}

const wide = matchMedia("(min-width: 48.01rem)");
const showPast = () => { at("past").open = wide.matches; };
wide.addEventListener("change", showPast);
showPast();
showSettings();
showMode();
openChat(chat);
connect();
look();
