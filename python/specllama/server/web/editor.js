// Edits the text of a turn in place.

import {make} from "./dom.js";
import {textOf} from "./turn.js";

/**
 * Open an editor for the text of a turn. Escape discards the changes.
 * @param {{element: HTMLElement, turn: import("./turn.js").Turn}} view
 * @param {string} verb label of the submit button
 * @param {(text: string) => void} use called with the new text
 */
export function edit({element, turn}, verb, use) {
  if (element.querySelector(".editor")) return;
  const field = make("textarea", {value: textOf(turn), "aria-label": "Text"});
  const end = () => {
    editor.remove();
    element.classList.remove("edited");
    element.querySelector(".tools .edit")?.focus();
  };
  const cancel = make("button", {type: "button", onclick: end}, "Cancel");
  const editor = make("form", {className: "editor"}, field,
    make("div", {className: "editor-tools"}, cancel, make("button", {className: "main"}, verb)));
  editor.addEventListener("submit", event => {
    event.preventDefault();
    if (!field.value.trim()) return;
    end();
    use(field.value);
  });
  editor.addEventListener("keydown", event => {
    if (event.key === "Escape") end();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) editor.requestSubmit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  element.classList.add("edited");
  element.prepend(editor);
  field.focus();
  editor.scrollIntoView({block: "nearest"});
}
