"use strict";
// The token leaves the address, as it does with the first form without this script.
const { address } = document.querySelector("main").dataset;
if (address) history.replaceState(null, "", address);
const form = document.querySelector("form");
const prefix = "countersign:";
// What happened here, as claims: the page works without them.
const claims = [];
let timer;
const send = () => {
  clearTimeout(timer);
  if (!claims.length) return;
  const body = new URLSearchParams({ csrf: form.elements.csrf.value, events: claims.join(" "), width: innerWidth, height: innerHeight });
  claims.length = 0;
  fetch(form.dataset.claims, { method: "POST", body, keepalive: true }).catch(() => {});
};
const claim = (event) => {
  claims.push(event);
  clearTimeout(timer);
  timer = setTimeout(send, 1000);
};
if (form?.dataset.keep) {
  const fields = [...form.querySelectorAll("input:not([type=hidden])")];
  const key = prefix + form.action + form.dataset.keep;
  // Only what was typed in this tab, for this text.
  try {
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "[]");
    if (fields.every((field) => !field.value)) fields.forEach((field, at) => { field.value = kept[at] ?? ""; });
  } catch {}
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    seen.unobserve(entry.target);
    claim(`${fields.indexOf(entry.target) + 1}:shown`);
  }), { threshold: 1 });
  fields.forEach((field, at) => {
    let before = field.value;
    seen.observe(field);
    field.addEventListener("input", () => {
      try { sessionStorage.setItem(key, JSON.stringify(fields.map((one) => one.value))); } catch {}
    });
    field.addEventListener("change", () => {
      if (field.value) claim(`${at + 1}:${before ? "changed" : "initialed"}`);
      before = field.value;
    });
  });
}
if (form?.hasAttribute("data-reviewed")) claim("0:reviewed");
if (document.querySelector("[data-ended]")) {
  try { Object.keys(sessionStorage).filter((key) => key.startsWith(prefix)).forEach((key) => sessionStorage.removeItem(key)); } catch {}
}
let sent;
// What changes while a form is on its way must not take the place of where the form leads.
const live = document.querySelector("[data-updates]");
let source;
const load = () => { if (!sent) location.replace(live.dataset.here); };
const listen = () => {
  if (!live || source) return;
  const opened = source = new EventSource(live.dataset.updates);
  opened.addEventListener("changed", load);
  // Refused, as where too many are open: then now and again.
  opened.addEventListener("error", () => { if (opened === source && opened.readyState === EventSource.CLOSED) setTimeout(load, 15000); });
};
const again = () => {
  if (sent) sent.textContent = sent.dataset.label;
  sent = undefined;
  listen();
};
document.querySelectorAll("form").forEach((one) => one.addEventListener("submit", (event) => {
  const status = one.querySelector("[data-status]");
  // The second half of a double click on the button of the line before.
  if (event.submitter?.name === "line" && event.timeStamp < 500) return event.preventDefault();
  if (sent || !navigator.onLine) {
    event.preventDefault();
    if (!sent) status.textContent = one.dataset.offline;
    return;
  }
  send();
  sent = event.submitter ?? one.querySelector("button");
  sent.dataset.label = sent.textContent;
  sent.textContent = one.dataset.sending;
  status.textContent = "";
  source?.close();
  source = undefined;
  setTimeout(again, 15000);
}));
addEventListener("pageshow", again);
addEventListener("pagehide", send);
listen();
document.querySelectorAll("[data-print]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => print());
});
document.querySelectorAll("time[data-local]").forEach((time) => {
  const said = { dateStyle: "medium", timeStyle: "short" };
  const local = new Date(time.dateTime).toLocaleString(document.documentElement.lang, said);
  time.textContent = `${local} (${time.textContent})`;
});
