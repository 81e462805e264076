// Live parts and keys of the operator's page. Without it every page works, and is loaded by hand.
"use strict";

(() => {
  const bar = document.getElementById("bar");
  const main = document.getElementById("main");

  function say(text, button) {
    bar.replaceChildren(text);
    if (button) bar.append(" ", button);
  }

  function parsed(html) {
    return new DOMParser().parseFromString(`<div>${html}</div>`, "text/html").body.firstElementChild;
  }

  // Makes `old` what `fresh` is, and leaves alone what is the same: focus, selection and scrolling
  // stay where they are.
  function morph(old, fresh) {
    for (const { name, value } of [...fresh.attributes])
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    const wanted = [...fresh.childNodes];
    wanted.forEach((node, place) => {
      const there = matching(old, node, place);
      if (!there) old.insertBefore(document.importNode(node, true), old.childNodes[place] || null);
      else {
        if (there !== old.childNodes[place]) old.insertBefore(there, old.childNodes[place] || null);
        if (node.nodeType !== Node.ELEMENT_NODE) {
          if (there.nodeValue !== node.nodeValue) there.nodeValue = node.nodeValue;
        } else if (!there.isEqualNode(node) && there !== document.activeElement) morph(there, node);
      }
    });
    while (old.childNodes.length > wanted.length) old.lastChild.remove();
  }

  function matching(old, node, place) {
    const key = node.dataset && node.dataset.key;
    for (let at = place; at < old.childNodes.length; at++) {
      const there = old.childNodes[at];
      if (there.nodeName !== node.nodeName) {
        if (!key) return null;
      } else if (!key || there.dataset.key === key) return key || !there.dataset?.key ? there : null;
    }
    return null;
  }

  const keyed = (list) => new Map([...list.querySelectorAll("[data-key]")].map((e) => [e.dataset.key, e]));

  // A list changes in place. What comes new, or is gone, waits until somebody wants to see it, so
  // that nothing moves under a finger.
  const held = new Map();

  function update(list, fresh) {
    const [before, after] = [keyed(list), keyed(fresh)];
    for (const [key, element] of before) {
      element.toggleAttribute("data-gone", !after.has(key));
      if (after.has(key)) morph(element, after.get(key));
    }
    const come = [...after.keys()].filter((key) => !before.has(key)).length;
    const gone = [...before.keys()].filter((key) => !after.has(key)).length;
    if (!come && !gone) {
      if (held.delete(list)) say("");
      return;
    }
    held.set(list, fresh);
    const button = document.createElement("button");
    button.textContent = "Show";
    button.addEventListener("click", show);
    say(`${come} new, ${gone} gone.`, button);
  }

  function show() {
    for (const [list, fresh] of held) morph(list, withAttributes(fresh, list));
    held.clear();
    say("");
    main.focus({ preventScroll: true });
  }

  function withAttributes(fresh, list) {
    for (const { name, value } of list.attributes) fresh.setAttribute(name, value);
    return fresh;
  }

  function take(pieces) {
    for (const [id, html] of Object.entries(pieces)) {
      const place = document.getElementById(id);
      if (!place) continue;
      const fresh = parsed(html);
      if (place.hasAttribute("data-list")) update(place, fresh);
      else morph(place, withAttributes(fresh, place));
    }
    document.dispatchEvent(new CustomEvent("answerback:pieces", { detail: Object.keys(pieces) }));
  }

  let away = false;

  function connected() {
    if (away) say("");
    away = false;
  }

  function lost(words) {
    away = true;
    say(words);
  }

  // A browser has few connections to a server: a tab that nobody sees keeps none.
  let source = null;
  let ended = false;

  function follow(url) {
    source?.close();
    if (document.hidden || ended) return;
    source = new EventSource(url);
    source.addEventListener("open", connected);
    source.addEventListener("pieces", (event) => {
      connected();
      take(JSON.parse(event.data));
    });
    source.addEventListener("away", () => lost("The database does not answer; this may be old."));
    source.addEventListener("over", signedOut);
    source.addEventListener("displaced", () => displaced(url));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) later(url);
      else lost("Not connected; this may be old.");
    });
  }

  // A browser gives up where it is refused: the process may be leaving, or the session be over.
  async function later(url) {
    lost("Not connected; this may be old.");
    const accept = { Accept: "text/event-stream" };
    const answer = await fetch(url, { headers: accept }).catch(() => null);
    answer?.body?.cancel();
    if (answer?.status === 401) signedOut();
    else setTimeout(() => follow(url), 3000);
  }

  // It does not come again by itself: two pages would end each other by turns.
  function displaced(url) {
    source.close();
    const button = document.createElement("button");
    button.textContent = "Follow this one";
    button.addEventListener("click", () => follow(url));
    away = true;
    say("Many pages are open: this one stands still.", button);
  }

  function signedOut() {
    ended = true;
    source?.close();
    const button = document.createElement("button");
    button.textContent = "Sign in";
    button.addEventListener("click", () => location.reload());
    say("You are not signed in any more.", button);
  }

  // Keys: / searches, j and k go through what is listed.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key === "/") {
      event.preventDefault();
      const field = document.querySelector("[data-search]");
      if (field) field.focus();
      else document.querySelector('nav a[href$="/search"]')?.click();
    } else if (event.key === "j" || event.key === "k") {
      const links = [...main.querySelectorAll(".rows a, .stuck h3 a, .acts a")];
      const at = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      links[Math.max(0, Math.min(links.length - 1, at))]?.focus();
    }
  });

  const live = main.dataset.live;
  if (live) {
    follow(live);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) source?.close();
      else follow(live);
    });
    window.addEventListener("pagehide", () => source?.close());
    window.addEventListener("pageshow", (event) => event.persisted && follow(live));
  }
})();
