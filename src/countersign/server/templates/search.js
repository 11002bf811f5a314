"use strict";
// The form is there only with JavaScript; the list of guides below it works without.
(() => {
  const form = document.getElementById("search");
  const words = document.getElementById("words");
  const count = document.getElementById("count");
  const results = document.getElementById("results");
  let sections;
  const score = (section, terms) => {
    const title = `${section.page} ${section.title}`.toLowerCase();
    const text = section.text.toLowerCase();
    if (!terms.every((term) => title.includes(term) || text.includes(term))) return 0;
    return 1 + terms.filter((term) => title.includes(term)).length;
  };
  const excerpt = (text, term) => {
    const start = Math.max(0, text.toLowerCase().indexOf(term) - 60);
    return `${start ? "…" : ""}${text.slice(start, start + 160)}…`;
  };
  const show = async () => {
    sections ??= await (await fetch("/docs/search.json")).json();
    const terms = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = terms.length
      ? sections.map((section) => [score(section, terms), section]).filter(([points]) => points)
      : [];
    found.sort(([one], [other]) => other - one);
    results.replaceChildren(...found.slice(0, 20).map(([, section]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = section.url;
      link.textContent = section.title === section.page
        ? section.page : `${section.page}: ${section.title}`;
      item.append(link, document.createElement("br"), excerpt(section.text, terms[0]));
      return item;
    }));
    count.textContent = terms.length ? `${found.length} found` : "";
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  words.addEventListener("input", show);
})();
