// The IndexedDB database of chats.
//
// chats: {id, title, time, last}. turns: see turn.js. traces: {id, chat, html}, by the turn's id.

/** Stores, and whether they have an index by chat. */
const STORES = {chats: false, turns: true, traces: true};

/** @type {IDBDatabase|null} */
let database = null;

/** Resolves when the database is open. */
const opened = new Promise((resolve, reject) => {
  const request = indexedDB.open("specllama", 1);
  request.onupgradeneeded = () => {
    for (const [name, byChat] of Object.entries(STORES)) {
      const store = request.result.createObjectStore(name, {keyPath: "id"});
      if (byChat) store.createIndex("chat", "chat");
    }
  };
  request.onsuccess = () => {
    database = request.result;
    resolve();
  };
  request.onerror = () => reject(request.error);
});
opened.catch(() => {});  // `change` and `read` throw it

/**
 * Change the database, as one transaction.
 * @param {(store: (name: string) => IDBObjectStore) => void} work
 * @returns {Promise<void>} Throws a DOMException if the storage is full.
 */
export async function change(work) {
  if (database === null) await opened;
  const transaction = database.transaction(Object.keys(STORES), "readwrite");
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
  work(name => transaction.objectStore(name));
  transaction.commit();  // so that it completes even if the page is left
  return done;
}

/**
 * Read from a store.
 * @param {string} name
 * @param {(store: IDBObjectStore) => IDBRequest} ask
 */
export async function read(name, ask) {
  if (database === null) await opened;
  const request = ask(database.transaction(name).objectStore(name));
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
