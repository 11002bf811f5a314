// How the search sorts what it finds: the guides come before decisions, changes and measurements.
var Scorer = {
  score: ([page, , , , score]) => (/^(docs\/[a-z]|README|spec)/.test(page) && !/decisions/.test(page) ? score + 50 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
