"use strict";
// Beside each time in UTC the same time where the reader is.
const said = { dateStyle: "medium", timeStyle: "long" };
document.querySelectorAll(".timeline time").forEach((time) => {
  const at = new Date(time.dateTime);
  if (at.getTimezoneOffset()) time.append(` (${at.toLocaleString(document.documentElement.lang, said)})`);
});
