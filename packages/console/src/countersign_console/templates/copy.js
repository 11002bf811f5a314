"use strict";
// A button beside each value that is to be copied; without a clipboard there is none.
document.querySelectorAll("[data-copy]").forEach((value) => {
  if (!navigator.clipboard) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "second row-button";
  button.textContent = value.dataset.copy;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(value.textContent);
    button.textContent = value.dataset.copied;
  });
  value.after(" ", button);
});
