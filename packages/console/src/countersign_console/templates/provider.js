"use strict";
document.querySelectorAll("form[data-send]").forEach((form) => {
  history.replaceState(null, "", location.pathname);
  form.submit();
});
