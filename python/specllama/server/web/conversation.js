// The conversation on the page, and the actions on its turns.

import * as chats from "./chats.js";
import * as settings from "./settings.js";
import * as tree from "./tree.js";
import * as work from "./work.js";
import {Answer} from "./answer.js";
import {announce, at, iconButton, make} from "./dom.js";
import {Generation} from "./generation.js";
import {Message} from "./message.js";
import {follow, toEnd} from "./view.js";
import {message, newTurn, textOf} from "./turn.js";

/** @typedef {import("./turn.js").Turn} Turn */

const TITLE = 60;  // characters of a title from the first message

let chat = chats.fresh();
/** @type {import("./tree.js").Turns} */
let turns = new Map();
/** The turns that were shown, by identifier. @type {Map<string, Answer|Message>} */
let views = new Map();
let changed = () => {};
let opened = 0;  // number of opened chats, so that a slow one does not replace a later one

export const current = () => chat;

/** Call a function when the list of chats changes. @param {() => void} action */
export const onChange = action => { changed = action; };

const shown = () => tree.path(turns, chat.last);

/** Store the chat and some turns, and update the list. @param {...Turn} some */
async function keep(...some) {
  await store(() => chats.keep(chat, ...some));
  changed();
}

/** Store something, and show an error if that fails. @param {() => Promise<void>} work */
async function store(work) {
  try {
    await work();
  } catch (error) {
    at("error").textContent =
      `The browser cannot store this chat (${error.name}). It is lost when you leave the page. `
      + "Export it or delete other chats.";
  }
}

/** Show a chat. @param {string} [id] undefined: a new chat */
export async function open(id) {
  const number = ++opened;
  const found = id && await chats.chat(id);
  const given = found ? await chats.turns(id) : [];
  if (number !== opened) return;
  chat = found ?? chats.fresh();
  turns = new Map(given.map(turn => [turn.id, turn]));
  views = new Map();
  await settle();
  show();
  toEnd();
}

/** Remove the last answer if it is empty because the page was left. */
async function settle() {
  const last = turns.get(chat.last);
  if (last?.role === "assistant" && !textOf(last) && !last.thoughts?.length) await remove(last);
}

async function remove(turn) {
  turns.delete(turn.id);
  chat.last = turn.back ?? turn.parent;
  await chats.remove(chat, turn);
}

function show() {
  const focused = document.activeElement;
  at("turns").replaceChildren(...shown().map(turn => view(turn).element));
  for (const turn of shown()) equip(turn);
  at("welcome").hidden = chat.last !== null;
  if (document.activeElement !== at("title")) at("title").value = chat.title;
  at("title").hidden = at("export-chat").hidden = chat.last === null;
  changed();
  showContext();
  follow();
  if (focused !== null && !focused.isConnected) at("answers").focus({preventScroll: true});
}

/** @param {Turn} turn */
function view(turn) {
  if (!views.has(turn.id)) {
    const item = make("li", {className: turn.role,
      "aria-label": turn.role === "user" ? "You" : "Assistant"});
    views.set(turn.id, turn.role === "user" ? new Message(item, turn)
      : new Answer(item, turn, {loadTrace: () => chats.trace(turn.id)}));
  }
  return views.get(turn.id);
}

function showContext() {
  const used = shown().findLast(turn => turn.used)?.used;
  at("room").hidden = !used;
  at("context").value = used ?? 0;
  at("used").textContent = `${used} tokens used`;
}

/** Do something, unless an answer is being generated. @param {() => any} action */
const whenIdle = action => work.attempt(() => {
  work.checkIdle();
  return action();
});

/** The same for an action that needs valid settings. @param {() => any} action */
const whenReady = action => whenIdle(() => {
  settings.check();
  return action();
});

/** Give a turn its buttons. @param {Turn} turn */
function equip(turn) {
  const one = view(turn);
  const isLast = turn.id === chat.last;
  const tool = (name, image, action) => iconButton(name, image, () => whenReady(action));
  const tools = choice(turn);
  tools.push(iconButton("Edit", "edit", turn.role === "user"
    ? () => one.edit("Send", text => whenReady(() => edit(turn, text)))
    : () => one.edit("Save", text => whenIdle(() => replace(turn, text)))));
  if (turn.role === "assistant") {
    tools.push(tool("Regenerate", "again", () => answer(turns.get(turn.parent))));
    if (isLast && textOf(turn)) tools.push(tool("Continue", "go", () => goOn(turn)));
  } else if (isLast) tools.push(tool("Answer", "again", () => answer(turn)));
  one.setTools(...tools);
}

/** The buttons that switch between the versions of a turn. @param {Turn} turn */
function choice(turn) {
  const all = tree.versions(turns, turn);
  if (all.length < 2) return [];
  const index = all.indexOf(turn);
  const step = (name, image, to) => {
    const made = iconButton(name, image, () => whenIdle(async () => {
      chat.last = tree.latest(turns, all[to]);
      show();
      view(all[to]).element.querySelector(`.${image}:enabled, .copy`)?.focus();
      await keep();
    }));
    made.disabled = !all[to];
    return made;
  };
  return [make("span", {className: "versions", role: "group", "aria-label": "Versions"},
    step("Previous version", "previous", index - 1), `${index + 1} / ${all.length}`,
    step("Next version", "next", index + 1))];
}

/** Send a message. @param {string} text @param {import("./turn.js").Attachment[]} files */
export async function send(text, files) {
  // The new message replaces one without an answer.
  const last = turns.get(chat.last);
  const turn = newTurn(chat.id, last?.role === "user" ? last.parent : chat.last, "user", text);
  if (files.length) turn.files = files;
  await say(turn);
}

/** Add a message, and generate an answer. @param {Turn} turn */
async function say(turn) {
  turns.set(turn.id, turn);
  chat.last = turn.id;
  chat.title ||= (textOf(turn).trim().split("\n")[0] || turn.files?.[0].name).slice(0, TITLE);
  await answer(turn);
}

/** Generate a new version of the answer to a message. @param {Turn} turn */
async function answer(turn) {
  const made = newTurn(chat.id, turn.id, "assistant");
  made.back = chat.last;  // shown again if the answer stays empty
  turns.set(made.id, made);
  chat.last = made.id;
  chat.time = Date.now();
  show();
  toEnd();
  keep(turn, made);
  await generate(made, tree.path(turns, turn.id));
}

/** Let the model continue an answer. @param {Turn} turn */
const goOn = turn => generate(turn, shown());

/** @param {Turn} turn the turn to fill @param {Turn[]} before the turns that the model reads */
async function generate(turn, before) {
  const body = {...settings.wanted(), messages: settings.withSystem(before.map(message))};
  const one = view(turn);
  one.ondraw = follow;
  const generation = new Generation(one, body, at("key").value, {
    save: () => store(() => chats.keepTurn(turn)),
    trace: html => chats.keepTrace(turn, html).catch(() => { delete turn.traced; }),
  });
  try {
    await work.run([generation]);
  } finally {
    if (!work.isLeft) await finish(turn, one);
  }
}

async function finish(turn, one) {
  if (turn.parts.length || turn.thoughts?.length) {
    delete turn.back;
    await keep(turn);
    announce(`Answer complete: ${(turn.figures ?? []).join(", ")}`);
  } else await remove(turn);
  one.ondraw = null;
  show();
}

/** Send another version of a message. @param {Turn} turn @param {string} text */
async function edit(turn, text) {
  const made = newTurn(chat.id, turn.parent, "user", text);
  if (turn.files) made.files = turn.files;
  await say(made);
}

/** Replace an answer by an edited version. @param {Turn} turn @param {string} text */
async function replace(turn, text) {
  const made = newTurn(chat.id, turn.parent, "assistant", text);
  made.figures = ["edited by you"];
  turns.set(made.id, made);
  chat.last = made.id;
  show();
  await keep(made);
}

at("title").addEventListener("change", () => {
  chat.title = at("title").value.trim() || chat.title;
  at("title").value = chat.title;
  keep();
});
