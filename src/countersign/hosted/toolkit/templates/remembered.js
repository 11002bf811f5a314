"use strict";
document.querySelectorAll("[data-passkey]").forEach((button) => {
  if (!window.PublicKeyCredential) return;
  const form = document.getElementById(button.dataset.form), status = document.getElementById(button.dataset.status);
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  button.closest("[hidden]").hidden = false;
  button.addEventListener("click", async () => {
    status.textContent = "";
    button.disabled = true;
    try {
      const publicKey = JSON.parse(button.dataset.passkey);
      publicKey.challenge = bytes(publicKey.challenge);
      if (publicKey.user) publicKey.user.id = bytes(publicKey.user.id);
      const made = await (publicKey.user ? navigator.credentials.create({ publicKey }) : navigator.credentials.get({ publicKey }));
      const response = {};
      for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) if (made.response[name]) response[name] = text(made.response[name]);
      form.elements.credential.value = JSON.stringify({ id: made.id, rawId: text(made.rawId), type: made.type, response });
      form.submit();
    } catch {
      status.textContent = button.dataset.failed;
    }
    button.disabled = false;
  });
});
// A press that was meant for the page before is not taken; also when this page comes back from the browser's memory.
document.querySelectorAll("[data-wait]").forEach((button) => addEventListener("pageshow", () => {
  button.disabled = true;
  setTimeout(() => { button.disabled = false; }, Number(button.dataset.wait));
}));
