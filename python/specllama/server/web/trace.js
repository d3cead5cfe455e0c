// The picture of a trace, as the server draws it, for those who have no mouse, too.

/** Return an element that shows a trace. What hovering shows of a token stands below it: of the one
    that was tapped, or to which the arrow keys lead. */
export function picture(html) {
  const box = document.createElement("div");
  box.className = "trace";
  box.innerHTML = html;  // by our server, which escapes every text in it
  const told = document.createElement("output");
  told.textContent = "Tap a token, or go to it with the arrow keys, to see where it came from.";
  box.append(told);
  const tokens = [...box.querySelectorAll(".round [title]")];
  let current = -1;
  const go = index => {
    if (!tokens[index]) return;
    tokens[current]?.removeAttribute("data-current");
    current = index;
    tokens[current].dataset.current = "";
    tokens[current].scrollIntoView({block: "nearest"});
    told.textContent = tokens[current].title;
    told.scrollIntoView({block: "nearest"});
  };
  const text = box.querySelector(".text");
  text.tabIndex = 0;
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", "Tokens; the arrow keys go from one to the next");
  text.addEventListener("click", event => go(tokens.indexOf(event.target.closest("[title]"))));
  text.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10}[event.key];
    const edge = {Home: 0, End: tokens.length - 1}[event.key];
    if (step === undefined && edge === undefined) return;
    event.preventDefault();
    go(edge ?? Math.min(Math.max(current + step, 0), tokens.length - 1));
  });
  return box;
}
