// The page: a conversation, or the continuation of a text.

import * as api from "./api.js";
import * as store from "./store.js";
import {Answer, copy, tool} from "./answer.js";
import {at, check, mode, show, wanted} from "./settings.js";

const COMPLETION_TOKENS = 256;

const FULL =
  "The browser's storage is full, so this is gone when the page is left. Delete some chats.";
const SAVE_MS = 1000;  // between two stores of a running answer
const STOP_MS = 5000;  // that the server has to end an answer

let chat = store.fresh();
let running = null;  // the request at work: {stop, save, left}
let editing = null;  // {index, before}: the message being changed, and the prompt before that
let model = null;

/** Whether a request is at work; if so, say what to do. */
function busy() {
  if (running) at("error").textContent = "An answer is being written. Stop it first (Esc).";
  return running !== null;
}

/** Whether a setting is invalid; if so, say which and why. */
function invalid() {
  const why = check();
  if (why) at("error").textContent = why;
  return why !== "";
}

// Conversations

function showChats() {
  at("chats").replaceChildren(...store.chats().map(one => {
    const item = document.createElement("li");
    const name = store.text(one.turns[0]).trim().slice(0, 80) || "…";
    const open = tool(name, () => { if (!busy()) openChat(store.chat(one.id) ?? one); });
    open.className = "open";
    open.setAttribute("aria-current", String(one.id === chat.id));
    const gone = tool("✕", () => {
      if (busy() || !confirm(`Delete “${name}”?`)) return;
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
  stopEditing();
  chat = one;
  const unanswered = settle();
  if (!wide.matches) at("past").open = false;
  showTurns();
  unanswered?.();
  at("answers").scrollTop = at("answers").scrollHeight;
  if (!touch.matches) at("prompt").focus();  // on touch screens the keyboard would open
}

function showTurns() {
  at("turns").replaceChildren(...chat.turns.map((turn, i) => turn.role === "user" ? userTurn(i)
    : new Answer(item("answer"), turn, null, turn.trace && store.trace(turn.trace)).element));
  showLast();
  showChats();
  at("welcome").hidden = chat.turns.length > 0;
}

/** If the last answer has not begun, take it out with its message and put back what they were to
    replace. Return a function that puts the message into the prompt, so that it is not lost. */
function settle() {
  if (!chat.turns.length || store.text(chat.turns.at(-1))) return null;
  const index = chat.turns.length - 2;
  const text = store.text(chat.turns[index]);
  const replaced = chat.replaced ?? [];
  chat.turns.splice(index, 2, ...replaced);
  delete chat.replaced;
  if (!replaced.length) return () => putBefore(text);
  if (store.text(replaced[0]) === text) return null;
  return () => edit(index, text);
}

/** Put a text into the prompt, before what may have been written there meanwhile. */
function putBefore(text) {
  at("prompt").value = [text, at("prompt").value].filter(one => one.trim()).join("\n\n");
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
    tool("Edit", () => { if (!busy()) edit(index, text.textContent); }));
  made.append(text, tools);
  return made;
}

/** Begin to change a message. Nothing of the conversation goes before the prompt is sent. */
function edit(index, text) {
  editing = {index, before: editing ? editing.before : at("prompt").value};
  at("prompt").value = text;
  at("prompt").focus();
  showEditing();
}

/** End that without sending, as if it had not been begun. */
function stopEditing() {
  if (!editing) return;
  at("prompt").value = editing.before;
  editing = null;
  showEditing();
}

function showEditing() {
  [...at("turns").children].forEach((one, i) =>
    one.classList.toggle("replaced", editing !== null && i >= editing.index));
  showKeys();
}

/** Give the last answer a button that generates it again. */
function showLast() {
  at("turns").querySelector(".again")?.remove();
  const last = chat.turns.length - 1;
  if (chat.turns[last]?.role !== "assistant") return;
  const again = tool("Again", () => {
    if (busy() || invalid()) return;
    stopEditing();
    run(() => converse(store.text(chat.turns[last - 1]), last - 1));
  });
  again.className = "again";
  at("turns").lastChild.querySelector(".tools").insertBefore(
    again, at("turns").lastChild.querySelector(".figures"));
}

// Generating

/** Have a message answered. It and its answer replace the turns from `index` on as soon as the
    answer begins; if it does not begin, everything is as before. */
async function converse(text, index) {
  const turn = {role: "assistant", parts: []};
  const user = {role: "user", parts: [[text, false]]};
  chat.replaced = chat.turns.splice(index, Infinity, user, turn);
  showTurns();
  at("turns").lastChild.remove();
  const answer = new Answer(item("answer"), turn, null);
  at("turns").append(answer.element);
  const system = at("system").value;
  const messages = chat.turns.slice(0, -1)
    .map(turn => ({role: turn.role, content: store.text(turn)}));
  if (system) messages.unshift({role: "system", content: system});
  let stored = true;
  try {
    await fill(answer, {...wanted(), messages}, chat, () => {
      if (answer.said) delete chat.replaced;
      return store.keep(chat);
    });
  } finally {
    if (running.left) return "";
    const unanswered = settle();
    if (chat.turns.length) stored = store.keep(chat);
    else store.forget(chat);
    if (answer.said) {
      showLast();
      showChats();
    } else showTurns();
    unanswered?.();
  }
  return stored ? "" : FULL;
}

function showCompletion(turn) {
  const trace = turn.trace && store.trace(turn.trace);
  const answer = new Answer(at("completion"), turn, turn.prompt, trace);
  const more = tool("Take over", () => { at("prompt").value = turn.prompt + answer.said; });
  answer.tools.insertBefore(more, answer.figures);
  return answer;
}

function showLastCompletion() {
  const last = store.completion();
  if (last) showCompletion(last);
}

async function complete(prompt) {
  at("welcome").hidden = true;
  const answer = showCompletion({prompt, parts: []});
  const save = () => !answer.said || store.keepCompletion(answer.turn);
  try {
    await fill(answer, {max_tokens: COMPLETION_TOKENS, ...wanted(), prompt}, null, save);
  } finally {
    if (!answer.said) showLastCompletion();
  }
  return save() ? "" : FULL;
}

/** Fill an answer from a generation, and store it by `save` as it comes. If the view is at the end,
    keep it there. */
async function fill(answer, body, chat, save) {
  const view = at("answers");
  let following = true;
  const follow = () => { if (following) view.scrollTop = view.scrollHeight; };
  const look = () => {
    following = view.scrollHeight - view.scrollTop - view.clientHeight < 60;
  };
  answer.ondraw = follow;
  answer.ontrace = html => { answer.turn.trace = store.keepTrace(chat, html); };
  answer.element.classList.add("busy");
  answer.turn.running = true;
  follow();
  view.addEventListener("scroll", look);
  const aborting = new AbortController();
  running.stop = async () => {
    const first = !answer.stopped;
    answer.stopped = true;
    // The server is asked to end the answer, which then comes with its trace.
    setTimeout(() => aborting.abort(), STOP_MS);
    if (!first || !answer.id || !await api.cancel(body, answer.id, at("key").value))
      aborting.abort();
  };
  running.save = () => { answer.draw(); save(); };
  let saved = performance.now();
  try {
    save();
    for await (const event of api.generate(body, at("key").value, aborting.signal)) {
      answer.take(event);
      if (performance.now() - saved < SAVE_MS) continue;
      running.save();
      saved = performance.now();
    }
    if (!answer.tokens && !answer.stopped) throw Error("The model ended its answer before it began.");
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    view.removeEventListener("scroll", look);
    answer.element.classList.remove("busy");
    delete answer.turn.running;
    answer.draw();
    answer.ondraw = null;
    at("status").textContent = answer.tokens ? `Answered: ${answer.took().join(", ")}` : "";
  }
}

/** Do some work, one at a time (see `running`), and show its error: what it throws or returns. */
async function run(work) {
  running = {stop() {}, save() {}};
  at("error").textContent = "";
  at("go").hidden = true;
  at("end").hidden = false;
  try {
    at("error").textContent = await work();
  } catch (error) {
    at("error").textContent = error.message;
  }
  running = null;
  at("go").hidden = false;
  at("end").hidden = true;
}

at("form").addEventListener("submit", submitted => {
  submitted.preventDefault();
  const text = at("prompt").value;
  if (!text.trim() || busy() || invalid()) return;
  if (mode() === "chat") {
    const index = editing ? editing.index : chat.turns.length;
    at("prompt").value = editing ? editing.before : "";
    editing = null;
    showKeys();
    run(() => converse(text, index));
  } else run(() => complete(text));
});
at("end").addEventListener("click", () => running?.stop());
at("fresh").addEventListener("click", () => { if (!busy()) openChat(store.fresh()); });
document.addEventListener("keydown", key => {
  if (key.key !== "Escape") return;
  if (running) running.stop();
  else stopEditing();
});
addEventListener("pagehide", () => {
  if (running) {
    running.save();
    running.left = true;  // the request now fails, which must not count as its end
  }
  store.keepPrompt(at("prompt").value);
});
// Another tab has changed what is stored.
addEventListener("storage", changed => {
  if (running || !store.isChat(changed.key)) return;
  const stored = store.chat(chat.id);
  if (stored && store.text(stored.turns.at(-1)) && !editing) openChat(stored);
  else showChats();
});

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
  at("max_tokens").placeholder = chatting ? "all" : COMPLETION_TOKENS;
  at("welcome").hidden = at(chatting ? "turns" : "completion").children.length > 0;
  showKeys();
}

function showKeys() {
  at("keys").textContent = mode() !== "chat" ? "Ctrl+Enter generates, Esc stops"
    : editing ? "Enter replaces what is faded, Esc keeps it"
      : "Enter sends, Shift+Enter begins a line, Esc stops";
}
at("modes").addEventListener("change", () => {
  stopEditing();
  showMode();
});

async function connect() {
  let models;
  try {
    models = await api.models(at("key").value);
  } catch (error) {
    at("model").textContent = error.message;
    return;
  }
  if (models === null) {
    model = null;
    at("model").textContent = "an API key is needed";
    at("settings").open = true;
    at("key").focus();
    return;
  }
  const chosen = at("models").value;
  model = models.find(one => one.id === chosen) ?? models[0];
  at("models").hidden = models.length === 1;
  at("models").replaceChildren(
    ...models.map(one => new Option(one.id, one.id, false, one === model)));
  // What a model is shows once it was loaded.
  const {description, n_ctx, chat} = model.meta ?? {chat: true};
  at("model").textContent = description === undefined ? `${model.id} · not loaded yet`
    : `${model.id} · ${description} · ${n_ctx} tokens of context`;
  const [chatting, completing] = document.getElementsByName("mode");
  chatting.disabled = !chat;
  chatting.parentElement.title = chat ? "" : "The model has no chat template.";
  if (!chat) completing.checked = true;
  showMode();
}
at("key").addEventListener("change", connect);
at("models").addEventListener("change", connect);

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
show();
at("prompt").value ||= store.prompt();
showLastCompletion();
showMode();
openChat(chat);
connect();
look();
