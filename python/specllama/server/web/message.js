// A user's message on the page.

import {chip} from "./attachments.js";
import {copy, iconButton, make} from "./dom.js";
import {edit} from "./editor.js";
import {textOf} from "./turn.js";

/** @typedef {import("./turn.js").Turn} Turn */

export class Message {
  /** @param {HTMLElement} element the element to fill @param {Turn} turn */
  constructor(element, turn) {
    this.element = element;
    this.turn = turn;
    this.tools = make("div", {className: "tools"});
    if (turn.files)
      element.append(make("ul", {className: "files"}, ...turn.files.map(file => chip(file))));
    if (textOf(turn)) element.append(make("div", {className: "text"}, textOf(turn)));
    element.append(this.tools);
  }

  /** Set the buttons: Copy, and the given ones. @param {...Node} buttons */
  setTools(...buttons) {
    this.tools.replaceChildren(
      iconButton("Copy", "copy", button => copy(textOf(this.turn), button)), ...buttons);
  }

  /** Open an editor for another version; see `edit`. */
  edit(verb, use) {
    edit(this, verb, use);
  }
}
