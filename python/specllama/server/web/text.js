// Elements that show a text and which parts of it were drafted.

/** Add a part to [text, drafted] pairs, joined with the last pair if that is of the same kind. */
export function append(parts, text, drafted) {
  const last = parts[parts.length - 1];
  if (last && last[1] === drafted) last[0] += text;
  else parts.push([text, drafted]);
}

/** Show parts in an element, whose text then equals theirs, blanks included. */
export function show(element, parts) {
  element.replaceChildren(...parts.map(span));
}

/** Do the same, with text between fences (``` or ~~~) shown as code. */
export function showBlocks(element, parts) {
  const blocks = [];
  let open = null;  // the fence that opened the current code block
  for (const line of lines(parts)) {
    const text = line.map(([part]) => part).join("");
    const fence = /^ {0,3}(`{3,}|~{3,})(.*)/.exec(text);
    const closes = open && fence && fence[1].startsWith(open) && !fence[2].trim();
    const opens = !open && fence && !fence[2].includes("`");
    if (opens || !blocks.length || (!open && blocks.at(-1).tagName === "PRE"))
      blocks.push(document.createElement(opens ? "pre" : "div"));
    if (opens) open = fence[1];
    if (opens || closes) {
      const mark = document.createElement("span");
      mark.className = "fence";
      mark.append(...line.map(span));
      blocks.at(-1).append(mark);
    } else blocks.at(-1).append(...line.map(span));
    if (closes) open = null;
  }
  element.replaceChildren(...blocks);
}

function span([text, drafted]) {
  if (!drafted) return document.createTextNode(text);
  const made = document.createElement("span");
  made.className = "drafted";
  made.append(text);
  return made;
}

/** Split parts into lines, each with its line break. */
function lines(parts) {
  const found = [[]];
  for (const [text, drafted] of parts)
    for (const piece of text.split(/(?<=\n)/)) {
      if (piece) found.at(-1).push([piece, drafted]);
      if (piece.endsWith("\n")) found.push([]);
    }
  if (!found.at(-1).length) found.pop();
  return found;
}
