"use strict";
// The form is there only with JavaScript; the list of guides below it works without.
(() => {
  const form = document.getElementById("search");
  const words = document.getElementById("words");
  const count = document.getElementById("count");
  const results = document.getElementById("results");
  let sections;
  // Words of a question that say nothing, and what these pages call what others call otherwise.
  const empty = new Set("a an and can do does how i in is it my of on or our the to we what with".split(" "));
  const ours = { customer: "buyer", delet: "eras", gdpr: "erasing", merchant: "vendor", seller: "vendor", "sign-off": "initial" };
  const terms_of = (typed) => {
    const all = typed.toLowerCase().split(/[\s?!,.;]+/).filter(Boolean);
    const said = all.filter((word) => !empty.has(word));
    return (said.length ? said : all).map((word) => {
      const stem = Object.keys(ours).find((one) => word.startsWith(one));
      return stem ? ours[stem] : word;
    });
  };
  const score = (section, terms) => {
    const places = [section.title, section.page, section.text, section.code].map((one) => one.toLowerCase());
    const points = terms.map((term) => [8, 3, 2, 1].find((_, at) => places[at].includes(term)) ?? 0);
    return points.every(Boolean) ? points.reduce((sum, one) => sum + one) : 0;
  };
  const excerpt = (text, term) => {
    const start = Math.max(0, text.toLowerCase().indexOf(term) - 60);
    return `${start ? "…" : ""}${text.slice(start, start + 160)}…`;
  };
  const show = async () => {
    sections ??= await (await fetch("/docs/search.json")).json();
    const terms = terms_of(words.value);
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
      item.append(link, document.createElement("br"), excerpt(`${section.text} ${section.code}`, terms[0]));
      return item;
    }));
    count.textContent = terms.length ? `${found.length} found` : "";
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  words.addEventListener("input", show);
})();
