// The page: sends the user's text, in one of three modes.

import "./sidebar.js";
import * as attachments from "./attachments.js";
import * as conversation from "./conversation.js";
import * as server from "./server.js";
import * as settings from "./settings.js";
import * as storage from "./storage.js";
import * as work from "./work.js";
import {compare} from "./compare.js";
import {MOST_TOKENS, complete, showLast} from "./completion.js";
import {at} from "./dom.js";

const touch = matchMedia("(pointer: coarse)");

/** The texts around the input field in each mode. */
const MODES = {
  chat: {verb: "Send", hint: "Message", most: "no limit", content: "turns",
    keys: "Enter to send, Shift+Enter for a new line, Esc to stop"},
  compare: {verb: "Compare", hint: "Question for both sides", most: "no limit", content: "question",
    keys: "Enter to ask both sides, Esc to stop"},
  completion: {verb: "Generate", hint: "Text to continue", most: MOST_TOKENS,
    content: "completion", keys: "Ctrl+Enter to generate, Esc to stop"},
};

const DO = {chat: conversation.send, compare, completion: complete};

function showMode() {
  const {verb, hint, most, content, keys} = MODES[settings.mode()];
  document.body.dataset.mode = settings.mode();
  at("go").title = verb;
  at("go").setAttribute("aria-label", verb);
  at("prompt").placeholder = hint;
  at("max_tokens").placeholder = most;
  at("welcome").hidden = at(content).childNodes.length > 0;
  at("keys").textContent = keys;
}
at("modes").addEventListener("change", showMode);

at("form").addEventListener("submit", submitted => {
  submitted.preventDefault();
  const text = at("prompt").value;
  if (!text.trim() && !attachments.any()) return;
  work.attempt(async () => {
    work.checkIdle();
    settings.check();
    const files = attachments.taken();
    if (settings.mode() !== "completion") at("prompt").value = "";
    await DO[settings.mode()](text, files);
  });
});

// Enter sends a message, as in other chats. It does not send a text to continue, which may need
// line breaks. On touch screens only the button sends.
at("prompt").addEventListener("keydown", key => {
  if (key.key !== "Enter" || key.isComposing) return;
  const sends = key.ctrlKey || key.metaKey
    || (settings.mode() !== "completion" && !key.shiftKey && !touch.matches);
  if (!sends) return;
  key.preventDefault();
  at("form").requestSubmit();
});
document.addEventListener("keydown", key => {
  if (key.key === "Escape" && !at("settings").open) work.stop();
});
addEventListener("pagehide", () => storage.keepPrompt(at("prompt").value));

settings.show();
at("prompt").value ||= storage.prompt();
showLast();
showMode();
conversation.open();
server.start(showMode);
if (!touch.matches) at("prompt").focus();
