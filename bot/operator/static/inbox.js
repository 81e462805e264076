// Writing to a chat: keys, canned texts, and words that are kept until they are sent. Without it the
// form is sent as any other.
"use strict";

(() => {
  const form = document.querySelector("[data-composer]");
  if (!form) return;
  const words = form.querySelector("[data-words]");
  const said = form.querySelector("[data-said]");
  const send = form.querySelector("button.main");
  const AGAIN_AFTER = 2000;
  let sending = false;

  function tell(text, kind) {
    said.textContent = text;
    said.className = `result ${kind || ""}`;
  }

  const lastSaid = () => document.querySelector("[data-last-said]")?.dataset.lastSaid;

  const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;
  const toEnd = () => window.scrollTo(0, document.documentElement.scrollHeight);
  let follows = true;
  window.addEventListener("scroll", () => (follows = atEnd()), { passive: true });

  // What was said since somebody began to write is told at once, and refused when it is sent: the
  // form goes on naming what was there when the first word was written.
  document.addEventListener("answerback:pieces", () => {
    if (follows) toEnd();
    const now = lastSaid();
    if (sending || !now || now === form.elements.seen.value) return;
    if (words.value.trim()) tell("Somebody answered since you began to write. Read it before you send.", "too-late");
    else form.elements.seen.value = now;
  });

  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  form.addEventListener("click", (event) => {
    const canned = event.target.closest("[data-canned]");
    if (!canned || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    words.setRangeText(canned.dataset.canned, words.selectionStart, words.selectionEnd, "end");
    canned.closest("details").open = false;
    words.focus();
  });

  // Another form of the page loads it anew. What was written so far goes with it, within this tab and
  // for that moment, and still names what its writer had read.
  const CARRIED = `answerback:${form.action}`;
  document.getElementById("main").addEventListener("submit", (event) => {
    if (event.target !== form && words.value.trim())
      sessionStorage.setItem(CARRIED, JSON.stringify([words.value, form.elements.seen.value]));
  });
  const carried = JSON.parse(sessionStorage.getItem(CARRIED));
  sessionStorage.removeItem(CARRIED);
  if (carried && !words.value) [words.value, form.elements.seen.value] = carried;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!sending) deliver(new FormData(form));
  });

  // One form, handed in until somebody has answered: whoever takes it a second time knows its key.
  async function deliver(filled) {
    sending = send.disabled = words.readOnly = true;
    tell("Sending …");
    for (;;) {
      const answer = await fetch(form.action, { method: "POST", body: filled }).catch(() => null);
      if (answer && answer.redirected) return location.replace(answer.url);
      if (answer && answer.status < 500) {
        await refused(answer);
        break;
      }
      tell("Not sent yet: nobody answers. It is tried again.", "too-late");
      await new Promise((go) => setTimeout(go, AGAIN_AFTER));
    }
    sending = send.disabled = words.readOnly = false;
    words.focus();
  }

  async function refused(answer) {
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const fresh = page.querySelector("[data-composer]");
    if (!fresh) return tell(answer.headers.get("content-type")?.startsWith("text/plain") ? text : "It was not sent.", "refused");
    for (const name of ["form_token", "key", "seen"]) form.elements[name].value = fresh.elements[name].value;
    const why = fresh.querySelector("[data-said]");
    said.textContent = why.textContent;
    said.className = why.className;
  }

  toEnd();
  words.focus({ preventScroll: true });
})();
