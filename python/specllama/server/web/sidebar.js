// The list of chats: search, export, import, delete.

import * as chats from "./chats.js";
import * as conversation from "./conversation.js";
import * as work from "./work.js";
import {fromJson, fromMarkdown, toJson, toMarkdown} from "./exchange.js";
import {at, download, iconButton, make} from "./dom.js";

/** @typedef {import("./chats.js").Chat} Chat */

const UNDO_MS = 8000;
const TYPING_MS = 150;  // pause in typing before the search begins
const wide = matchMedia("(min-width: 56.01rem)");

/** Do something with a chat, unless an answer is being generated. @param {() => any} action */
const whenIdle = action => work.attempt(() => {
  work.checkIdle();
  return action();
});

let typing = 0;
let listed = 0;  // number of lists, so that a slow one does not replace a later one

/** List the chats that match the search. */
export async function list() {
  const number = ++listed;
  const wanted = at("search").value.trim();
  let all = [];
  try {
    all = await chats.list();
    if (wanted) {
      const found = await chats.withText(wanted);
      all = all.filter(one => found.has(one.id)
        || one.title.toLowerCase().includes(wanted.toLowerCase()));
    }
  } catch { /* the browser stores nothing; `keep` shows the error */ }
  if (number !== listed) return;
  at("chats").replaceChildren(...all.map(item));
  at("none").hidden = all.length > 0;
  at("none").textContent = wanted ? "No chats found." : "No chats yet.";
}

/** @param {Chat} chat */
function item(chat) {
  const title = chat.title || "Untitled";
  const open = make("button", {type: "button", className: "open", title,
    "aria-current": String(chat.id === conversation.current().id)}, title);
  open.addEventListener("click", () => whenIdle(() => show(chat.id)));
  return make("li", {}, open,
    iconButton(`Delete ${title}`, "delete", () => whenIdle(() => remove(chat))));
}

/** Show a chat. @param {string} [id] undefined: a new chat */
export async function show(id) {
  await conversation.open(id);
  if (!wide.matches) toggle(false);
  // On touch screens, focus would open the keyboard.
  if (!matchMedia("(pointer: coarse)").matches) at("prompt").focus();
}

/** @param {Chat} chat */
async function remove(chat) {
  const whole = await chats.whole(chat);
  await chats.forget(whole);
  if (chat.id === conversation.current().id) await conversation.open();
  else await list();
  const undo = make("button", {type: "button"}, "Undo");
  const toast = make("p", {}, `Deleted “${chat.title.slice(0, 40)}”.`, " ", undo);
  undo.addEventListener("click", () => work.attempt(async () => {
    toast.remove();
    await chats.restore(whole);
    await list();
    at("prompt").focus();
  }));
  at("toasts").replaceChildren(toast);
  undo.focus();
  setTimeout(() => toast.remove(), UNDO_MS);
}

/** A file name for a title. @param {string} title */
const fileName = title => title.replace(/[^\p{L}\p{N} -]/gu, "").trim().slice(0, 60) || "chat";

const MAKERS = {
  json: [toJson, "application/json"],
  md: [wholes => wholes.map(toMarkdown).join("\n"), "text/markdown"],
};

/** @param {Chat[]} some @param {string} name @param {keyof MAKERS} kind */
async function save(some, name, kind) {
  const [write, type] = MAKERS[kind];
  const wholes = [];
  for (const one of some) wholes.push(await chats.whole(one));
  download(`${name}.${kind}`, write(wholes), type);
}

for (const kind of Object.keys(MAKERS))
  at(`export-${kind}`).addEventListener("click", () => work.attempt(() => {
    at("export-menu").hidePopover();
    const chat = conversation.current();
    return save([chat], fileName(chat.title), kind);
  }));
at("export-all").addEventListener("click", () => work.attempt(async () =>
  save(await chats.list(), "specllama chats", "json")));

at("import").addEventListener("click", () => at("import-file").click());
at("import-file").addEventListener("change", () => work.attempt(async () => {
  const [file] = at("import-file").files;
  at("import-file").value = "";
  const text = await file.text();
  const found = file.name.endsWith(".md") ? fromMarkdown(text) : fromJson(text);
  for (const one of found) await chats.restore(one);
  await list();
}));

/** Show or hide the list. @param {boolean} isOpen */
function toggle(isOpen) {
  document.body.dataset.past = isOpen ? "open" : "closed";
  at("show-past").setAttribute("aria-expanded", String(isOpen));
  at("past").inert = !isOpen;
  for (const one of document.querySelectorAll("main, body > header"))
    one.inert = isOpen && !wide.matches;  // the list covers it
}

at("show-past").addEventListener("click", () => {
  toggle(document.body.dataset.past !== "open");
  if (document.body.dataset.past === "open" && !wide.matches) at("search").focus();
});
at("past").addEventListener("keydown", event => {
  if (event.key !== "Escape" || wide.matches) return;
  toggle(false);
  at("show-past").focus();
  event.stopPropagation();
});
at("shade").addEventListener("click", () => toggle(false));
at("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(list, TYPING_MS);
});
at("fresh").addEventListener("click", () => whenIdle(() => show()));
wide.addEventListener("change", () => toggle(wide.matches));
toggle(wide.matches);
conversation.onChange(list);
chats.onChange(async id => {
  if (id === conversation.current().id && !work.isRunning()) await conversation.open(id);
  else await list();
});
