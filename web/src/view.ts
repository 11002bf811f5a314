/** Making elements, and how they look. */

type Attributes = Readonly<Record<string, string | boolean | ((event: Event) => void) | null>>;
export type Child = Node | string | null | false;

/** Whether it is to be shown. */
export const is = (child: Child): child is Node | string => !!child;

/** An element. Text never becomes markup; a function is what happens on the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (typeof value === "string") element.setAttribute(name, value);
  }
  element.append(...children.filter(is));
  return element;
}

/** A button; `part` names it for the page's own style. */
export function button(part: string, text: string, act: (event: Event) => void): HTMLButtonElement {
  return h("button", { type: "button", part: `button ${part}`, class: part, click: act }, text);
}

const STYLE = `
:host {
  --_accent: var(--countersign-accent, #0b57a4);
  --_accent-text: var(--countersign-accent-text, #fff);
  --_background: var(--countersign-background, #fff);
  --_text: var(--countersign-text, #1b1d22);
  --_muted: var(--countersign-muted, #545962);
  --_border: var(--countersign-border, #767b85);
  --_error: var(--countersign-error, #b3261e);
  --_radius: var(--countersign-radius, 0.5em);
  display: block;
  box-sizing: border-box;
  padding: var(--countersign-padding, 1.25em);
  background: var(--_background);
  color: var(--_text);
  font-family: var(--countersign-font, inherit);
  line-height: 1.5;
  overflow-wrap: anywhere;
}
@supports (color: light-dark(#000, #fff)) {
  :host {
    --_accent: var(--countersign-accent, light-dark(#0b57a4, #8ab8ff));
    --_accent-text: var(--countersign-accent-text, light-dark(#fff, #0b1220));
    --_background: var(--countersign-background, light-dark(#fff, #16181d));
    --_text: var(--countersign-text, light-dark(#1b1d22, #eceef2));
    --_muted: var(--countersign-muted, light-dark(#545962, #b4bac6));
    --_border: var(--countersign-border, light-dark(#767b85, #8b919d));
    --_error: var(--countersign-error, light-dark(#b3261e, #ffb4ab));
  }
}
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
h2, h3, h4, p, ol, ul { margin: 0 0 0.75em; }
h2 { font-size: 1.4em; line-height: 1.25; }
h3 { font-size: 1.15em; line-height: 1.3; }
h4 { font-size: 1em; }
h2:focus { outline: none; }
/* Set off from what surrounds it, so that it calls attention to itself. */
.notice { border: 1px solid var(--_text); border-radius: var(--_radius); margin-bottom: 1em; padding: 1em; }
.heading { font-weight: 700; }
.notice .heading, .text { font-size: 1.15em; }
ol { padding: 0; list-style: none; }
ol > li {
  display: flex;
  flex-wrap: wrap;
  gap: 0.75em 1.5em;
  align-items: start;
  padding: 1em 0;
  border-top: 1px solid var(--_border);
}
.text { flex: 1 1 20em; margin: 0; white-space: pre-line; }
.text::before { content: "(" attr(data-letter) ") "; font-weight: bold; }
.field { flex: 0 1 13em; }
label { display: block; }
.field label { font-weight: bold; }
input:not([type="checkbox"]) {
  width: 100%;
  min-height: 2.75rem;
  padding: 0.25em 0.6em;
  border: 2px solid var(--_border);
  border-radius: var(--_radius);
  background: var(--_background);
  color: inherit;
  font: inherit;
  font-size: max(1rem, 1em);
}
[aria-invalid="true"] { border-color: var(--_error) !important; }
.check { display: flex; gap: 0.75em; align-items: start; padding: 0.75em 0; }
.check input { flex: none; width: 1.5rem; height: 1.5rem; margin: 0; accent-color: var(--_accent); }
button, .button {
  display: inline-block;
  min-height: 2.75rem;
  margin: 0 0.75em 0.75em 0;
  padding: 0.6em 1.2em;
  border: 2px solid var(--_accent);
  border-radius: var(--_radius);
  background: var(--_background);
  color: var(--_accent);
  font: inherit;
  font-weight: bold;
  line-height: 1.2;
  text-decoration: none;
  cursor: pointer;
}
button.primary, .button { background: var(--_accent); color: var(--_accent-text); }
button.link {
  min-height: 1.5rem;
  margin: 0;
  padding: 0.25em 0;
  border: 0;
  background: none;
  color: inherit;
  font-weight: inherit;
  text-align: start;
  text-decoration: underline;
}
button[disabled] { cursor: progress; opacity: 0.7; }
:is(button, a, input):focus-visible { outline: 3px solid var(--_accent); outline-offset: 2px; }
a { color: var(--_accent); }
.hint, .small { color: var(--_muted); }
.small { font-size: 0.9em; }
.problem { color: var(--_error); font-weight: bold; }
.field .problem { margin: 0.25em 0 0; }
.errors { margin: 0 0 1em; padding: 0.75em 1em; border: 2px solid var(--_error); border-radius: var(--_radius); }
.errors > :last-child { margin-bottom: 0; }
.errors ul { padding: 0; list-style: none; }
.test { padding: 0.4em 0.8em; border: 2px dashed var(--_border); border-radius: var(--_radius); }
.initials { margin: 0; font-weight: bold; }
fieldset { margin: 0.5em 0 0; padding: 0 1em; border: 1px solid var(--_border); border-radius: var(--_radius); }
legend { padding: 0 0.4em; }
code { font-size: 1em; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;

let sheet: CSSStyleSheet | undefined;

/** One sheet for every element of a page: a constructed one, which no CSP forbids. */
export function style(): CSSStyleSheet {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  return sheet;
}
