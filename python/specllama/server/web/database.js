// What the browser stores of chats: an IndexedDB database.
//
// chats: {id, title, time, last}. turns: see turn.js. traces: {id, chat, html}, by the turn's id.

/** Stores, and whether their records are found by chat. */
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
opened.catch(() => {});  // each use below throws it

/**
 * Change the database; all of the change is made, or none of it.
 * @param {(store: (name: string) => IDBObjectStore) => void} work
 * @returns {Promise<void>} It throws a DOMException if there is no room.
 */
export async function change(work) {
  if (database === null) await opened;
  const transaction = database.transaction(Object.keys(STORES), "readwrite");
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
  work(name => transaction.objectStore(name));
  transaction.commit();  // so that it outlives the page
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
