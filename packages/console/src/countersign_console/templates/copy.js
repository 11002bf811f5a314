"use strict";
// A button beside each value that is to be copied; without a clipboard there is none.
document.querySelectorAll("[data-copy]").forEach((value) => {
  if (!navigator.clipboard) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = value.title ? "small-button" : "second row-button";
  button.textContent = value.dataset.copy;
  if (value.title) button.setAttribute("aria-label", `${value.dataset.copy} ${value.title}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(value.textContent);
    button.textContent = value.dataset.copied;
  });
  value.after(" ", button);
});
// Beside each time in UTC the same time where the reader is, who has chosen no zone.
const said = { dateStyle: "medium", timeStyle: "long" };
document.querySelectorAll(".timeline time:not([data-zone])").forEach((time) => {
  const at = new Date(time.dateTime);
  if (at.getTimezoneOffset()) time.append(` (${at.toLocaleString(document.documentElement.lang, said)})`);
});
