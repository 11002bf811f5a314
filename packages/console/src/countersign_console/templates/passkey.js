"use strict";
document.querySelectorAll("[data-passkey]").forEach((button) => {
  const form = button.form, status = form.querySelector("[role=status]");
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (!window.PublicKeyCredential) { status.textContent = button.dataset.missing; return; }
  button.disabled = false;
  form.addEventListener("submit", async (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    status.textContent = "";
    button.disabled = true;
    try {
      const publicKey = JSON.parse(button.dataset.passkey);
      publicKey.challenge = bytes(publicKey.challenge);
      if (publicKey.user) publicKey.user.id = bytes(publicKey.user.id);
      for (const one of [...(publicKey.excludeCredentials || []), ...(publicKey.allowCredentials || [])]) one.id = bytes(one.id);
      const made = await (publicKey.user ? navigator.credentials.create({ publicKey }) : navigator.credentials.get({ publicKey }));
      const response = {};
      for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) if (made.response[name]) response[name] = text(made.response[name]);
      form.elements.credential.value = JSON.stringify({ id: made.id, rawId: text(made.rawId), type: made.type, response, clientExtensionResults: made.getClientExtensionResults() });
      form.submit();
    } catch {
      status.textContent = button.dataset.failed;
    }
    button.disabled = false;
  });
});
// The token of a link stands behind the #, where no server sees it.
document.querySelectorAll("form[data-link]").forEach((form) => {
  if (!location.hash) return;
  form.elements.link.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  form.submit();
});
