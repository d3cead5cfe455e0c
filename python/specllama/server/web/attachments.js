// Files for the next message: dropped, pasted or chosen.

import {at, icon, iconButton, make} from "./dom.js";

/** @typedef {import("./turn.js").Attachment} Attachment */

const MOST_BYTES = 512 * 1024;  // of a text file; a request has 1 MiB unless the server allows more
const LARGEST_SIDE = 2048;  // pixels of an image; few models use more
const QUALITY = 0.85;
const TEXT_FILES = "text/*,.md,.py,.js,.ts,.c,.h,.cpp,.rs,.go,.java,.json,.yaml";

/** @type {Attachment[]} */
let files = [];
let seesImages = Promise.resolve(false);

/** Allow or refuse images. An image given earlier waits for the server's answer.
 * @param {Promise<boolean>} answer whether the model sees images */
export async function allowImages(answer) {
  seesImages = answer;
  const value = await answer;
  if (seesImages === answer) at("file").accept = value ? "" : TEXT_FILES;
}

/** Return the files to send, and clear the list. @returns {Attachment[]} */
export function taken() {
  const found = files;
  files = [];
  show();
  return found;
}

export const any = () => files.length > 0;

/** Add files, or show an error for a file that is not supported. @param {Iterable<File>} given */
async function add(given) {
  try {
    for (const file of given)
      files.push(file.type.startsWith("image/") ? await image(file) : await text(file));
    at("error").textContent = "";
  } catch (error) {
    at("error").textContent = error.message;
  }
  show();
}

async function text(file) {
  if (file.size > MOST_BYTES)
    throw Error(`${file.name} has ${file.size} bytes; the maximum is ${MOST_BYTES}.`);
  let text;
  try {
    text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
  } catch {
    text = "\0";
  }
  if (text.includes("\0")) throw Error(`${file.name} is not UTF-8 text; choose a text file.`);
  return {name: file.name, text};
}

async function image(file) {
  if (!await seesImages) throw Error(`${file.name} is an image, but this model cannot read images.`);
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw Error(`The browser cannot read the image ${file.name}; choose a PNG or JPEG file.`);
  }
  const scale = Math.min(1, LARGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = make("canvas", {width: Math.max(1, Math.round(bitmap.width * scale)),
    height: Math.max(1, Math.round(bitmap.height * scale))});
  const context = canvas.getContext("2d");
  context.fillStyle = "white";  // as the server does, where the image is transparent
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const kind = file.type === "image/png" && file.size < MOST_BYTES && scale === 1
    ? "image/png" : "image/jpeg";
  return {name: file.name || "image", url: canvas.toDataURL(kind, QUALITY)};
}

/** Make the element of a file. @param {Attachment} file @param {...Node} tools */
export function chip(file, ...tools) {
  const made = make("li", {className: "chip"});
  if (file.url) made.append(make("img", {src: file.url, alt: file.name}));
  else made.append(icon("attach"), make("span", {}, file.name));
  made.append(...tools);
  return made;
}

function show() {
  at("files").hidden = !files.length;
  at("files").replaceChildren(...files.map(file => chip(file, iconButton(
    `Remove ${file.name}`, "close", () => {
      files = files.filter(one => one !== file);
      show();
      at("prompt").focus();
    }))));
}

const isDrag = event => event.dataTransfer?.types.includes("Files")
  && document.body.dataset.mode !== "completion";

at("attach").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", () => {
  add([...at("file").files]);
  at("file").value = "";
});
at("prompt").addEventListener("paste", event => {
  const given = [...event.clipboardData.files];
  if (!given.length || document.body.dataset.mode === "completion") return;
  event.preventDefault();
  add(given);
});
addEventListener("dragover", event => {
  if (!isDrag(event)) return;
  event.preventDefault();
  document.body.dataset.drag = "";
});
addEventListener("dragleave", event => {
  if (!event.relatedTarget) delete document.body.dataset.drag;
});
addEventListener("drop", event => {
  delete document.body.dataset.drag;
  if (!isDrag(event)) return;
  event.preventDefault();
  add([...event.dataTransfer.files]);
});
