var b=class extends Error{constructor(t,i,n){super(i);this.code=t;this.retryable=n===0||n===429||n>=500}code;retryable},M="/v1/checkout_sessions/current",A=3,$=2e4;async function E(c,e,t,i,n){for(let s=1;;s++)try{return await f(c,e,t,i,n)}catch(o){if(n.throwIfAborted(),!(o instanceof b&&o.retryable)||s===A)throw o;await new Promise(d=>setTimeout(d,s*1e3)),n.throwIfAborted()}}async function f(c,e,t,i,n){let s={Authorization:`Bearer ${e}`};i&&(s["Content-Type"]="application/json");let o=new AbortController,d=setTimeout(()=>o.abort(),$);n.addEventListener("abort",()=>o.abort(),{signal:o.signal});let a,p;try{a=await fetch(c+M+t,{method:i?"POST":"GET",headers:s,body:i?JSON.stringify(i):null,cache:"no-store",credentials:"omit",referrerPolicy:"no-referrer",keepalive:t==="/events",signal:o.signal}),p=await a.json()}catch(g){throw new b("network_error",String(g),0)}finally{clearTimeout(d)}if(a.ok)return p;let{code:l,message:h}=p.error??{};throw new b(l??"internal_error",h??a.statusText,a.status)}async function T(c){try{let e=await fetch(c,{cache:"force-cache",credentials:"omit"});if(!e.ok)return null;let t=await crypto.subtle.digest("SHA-256",await e.arrayBuffer());return Array.from(new Uint8Array(t),i=>i.toString(16).padStart(2,"0")).join("")}catch{return null}}var _=c=>!!c;function r(c,e={},...t){let i=document.createElement(c);for(let[n,s]of Object.entries(e))typeof s=="function"?i.addEventListener(n,s):s===!0?i.setAttribute(n,""):typeof s=="string"&&i.setAttribute(n,s);return i.append(...t.filter(_)),i}function m(c,e,t){return r("button",{type:"button",part:`button ${c}`,class:c,click:t},e)}var H=`
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
`,y;function S(){return y||(y=new CSSStyleSheet,y.replaceSync(H)),y}var N={loading:"Loading the notice…",problem:"Something went wrong. Try again.",offline:"The notice could not be loaded. Check your connection, and try again.",retry:"Try again",unknown_intro:"This notice cannot be shown. Go back to the shop, and start again."},C=/[^\s\p{C}\p{M}\p{Default_Ignorable_Code_Point}\u2800]/u,I="32",P=200,R=700,D=globalThis.HTMLElement??class{},k=class extends D{static formAssociated=!0;static observedAttributes=["base-url","client-token","required"];#n=this.attachInternals();#f=this.attachShadow({mode:"open"});#o=r("section",{part:"body","aria-labelledby":"title"});#c=r("div",{role:"status",class:"hidden"});#d="loading";#t=null;#i=[];#y=[];#h=[];#u;#v=Promise.resolve();#a=new AbortController;#_=!1;#k=!1;#g;constructor(){super(),this.#f.adoptedStyleSheets=[S()],this.#f.append(this.#c,this.#o)}get baseUrl(){return(this.getAttribute("base-url")??new URL("../../",import.meta.url).href).replace(/\/+$/,"")}set baseUrl(e){this.setAttribute("base-url",e)}get clientToken(){return this.getAttribute("client-token")}set clientToken(e){e===null?this.removeAttribute("client-token"):this.setAttribute("client-token",e)}get required(){return this.hasAttribute("required")}set required(e){this.toggleAttribute("required",e)}get state(){return this.#d}get value(){return this.#t?.ack_id??""}get name(){return this.getAttribute("name")??""}get form(){return this.#n.form}get validity(){return this.#n.validity}get validationMessage(){return this.#n.validationMessage}checkValidity(){return this.#n.checkValidity()}reportValidity(){return this.#n.reportValidity()}reload(){this.#w()}connectedCallback(){document.addEventListener("visibilitychange",this.#I),addEventListener("pagehide",this.#p),this.#w()}disconnectedCallback(){document.removeEventListener("visibilitychange",this.#I),removeEventListener("pagehide",this.#p),this.#A()}attributeChangedCallback(e,t,i){e==="required"?this.#D():this.isConnected&&t!==i&&this.#w()}#A(){this.#g?.disconnect(),clearTimeout(this.#u),this.#a.abort()}#w(){this.#_||(this.#_=!0,queueMicrotask(()=>{this.#_=!1,this.isConnected&&(this.#A(),this.#a=new AbortController,this.#t=null,this.#h=[],this.#i=[],this.#k=!1,this.#n.setFormValue(null),this.#m())}))}async#m(e){this.#r("loading",this.#s(this.#e("loading"))),this.clientToken&&await this.#$("",null,e)}async#$(e,t,i){let{signal:n}=this.#a,s;try{s=await E(this.baseUrl,this.clientToken??"",e,t,n)}catch(o){n.aborted||this.#q(o,e,t);return}n.aborted||this.#H(s,i)}#H(e,t){let i=!this.#t,n=this.#t?.notice?.digest;this.#t=e,e.status!=="open"?(this.#E(null),this.#n.setFormValue(e.ack_id),this.#j(e)):e.step==="identity"||!e.notice?this.#N():this.#O(e.notice,n)?this.#l(this.#e("changed_notice")):this.#l(t);let{checkout_session_id:s,status:o,return_url:d}=e;i&&this.#b("ready",{checkout_session_id:s,status:o});let a={checkout_session_id:s,status:o,return_url:d};o==="completed"&&this.#b("acknowledged",a),o==="declined"&&this.#b("declined",a)}#q(e,t,i){let{code:n,message:s,retryable:o}=e;this.#b("error",{code:n,message:s,retryable:o}),t&&["checkout_session_closed","notice_not_in_force"].includes(n)?this.#m():t&&["notice_version_mismatch","initials_count_mismatch"].includes(n)?this.#m(this.#e("changed_notice")):n==="empty_initials"?this.#l(s):this.#F(e,()=>{t?this.#L(t,i):this.#m()})}get#x(){return`countersign-notice:${this.#t?.checkout_session_id}`}#E(e){try{e?sessionStorage.setItem(this.#x,JSON.stringify([e,this.#i])):sessionStorage.removeItem(this.#x)}catch{}}#O(e,t=e.digest){let i=null;try{i=JSON.parse(sessionStorage.getItem(this.#x)??"null")}catch{}let[n,s]=i??[t,this.#i],o=n!==e.digest;return o&&this.#E(null),this.#i=e.bullets.map((d,a)=>o?"":String(s[a]??"")),this.#y=[...this.#i],o&&s.some(d=>d)}#e(e,t){return(this.#t?.words[e]??N[e]??e).replace("{vendor}",this.#t?.vendor??"").replace("{number}",`${t}`)}#r(e,...t){let i=this.#t?.livemode===!1;this.#g?.disconnect(),this.#d=e,this.#o.lang=this.#c.lang=this.#t?.locale??"en",this.#o.setAttribute("aria-busy",`${e==="loading"||e==="sending"}`),this.#o.replaceChildren(...[i&&r("p",{part:"test",class:"test small"},this.#e("test_mode")),...t].filter(_));let n=this.#o.querySelector("h2");this.#c.textContent=n?.textContent??"",this.#D(),this.#k?n?.focus():this.#k=e!=="loading"}#s(e){return r("h2",{id:"title",part:"title",tabindex:"-1"},e)}#N(){let{reasons:e=[],words:t={}}=this.#t??{},i=e.map(n=>t[`reason_${n}`]??this.#e("reason_other"));this.#r("identity",this.#s(this.#e("identity_title")),i.length>0&&r("p",{class:"problem",part:"problem"},`${this.#e("identity_failed")} ${i.join(" ")}`),r("p",{},this.#e("identity_intro")),r("p",{},this.#z("identity",this.#e("identity_open"))),this.#S())}#I=async()=>{if(this.#d!=="identity"||document.visibilityState!=="visible")return;let{signal:e}=this.#a,t=await f(this.baseUrl,this.clientToken??"","",null,e).catch(()=>null),[i,n]=[this.#t,t];e.aborted||!n||this.#d!=="identity"||(n.status!==i?.status||n.step!==i.step||`${n.reasons}`!=`${i.reasons}`)&&this.#H(n)};#z(e,t){return this.#T(e,`${this.baseUrl}/c/${this.clientToken}`,t,"_blank")}#T(e,t,i,n=null){return/^https?:/.test(t)?r("a",{href:t,part:`button ${e}`,class:"button",target:n,rel:"noopener noreferrer"},i):null}#S(){return m("decline",this.#e("decline"),()=>this.#U())}#U(){let e=()=>this.#t?.notice?this.#l():this.#N();this.#r("declining",this.#s(this.#e("decline_title")),r("p",{},this.#e("decline_intro")),m("primary decline-confirm",this.#e("decline_confirm"),()=>{this.#L("/decline",{})}),m("decline-back",this.#e("decline_back"),e))}#P(e,t){return r("ol",{part:"lines"},...e.bullets.map((i,n)=>r("li",{part:"line"},r("p",{id:`text-${n}`,class:"text",part:"line-text",lang:e.language,"data-letter":i.id},i.text),t(n))))}#l(e){let t=this.#t?.notice;if(!t)return;let i=r("div",{role:"alert"}),n=t.bullets.map((l,h)=>this.#V(t,h)),{text_gaps:s,language:o,source_url:d}=t,a=this.#P(t,l=>r("div",{class:"field"},r("label",{for:`line-${l}`,part:"label"},this.#e("line_label",l+1)),n[l]??"",r("p",{id:`problem-${l}`,class:"problem",part:"problem",hidden:!0}))),p=l=>{l.preventDefault();let h=n.filter(u=>!C.test(u.value));n.forEach((u,w)=>{let x=this.#f.getElementById(`problem-${w}`),v=h.includes(u);u.setAttribute("aria-invalid",`${v}`),x.hidden=!v,x.textContent=v?this.#e("empty_initials",w+1):""});let g=h.map(u=>[this.#e("empty_initials",n.indexOf(u)+1),u]);h.length?this.#C(i,g):this.#B()};this.#r("form",this.#s(this.#e("title")),r("p",{part:"intro"},this.#e("intro")),i,r("form",{novalidate:!0,submit:p,part:"form"},r("div",{part:"notice",class:"notice"},r("h3",{part:"notice-title",lang:o},t.title),r("p",{part:"notice-heading",class:"heading",lang:o},t.heading),o!==this.#t?.locale&&r("p",{class:"hint small"},`${this.#e("legal_language")} ${this.#t?.words.legal_help??""}`),r("h3",{},this.#e("lines_heading")),r("p",{id:"hint",class:"hint"},this.#e("initials_hint")),a,r("p",{part:"attestation",class:"heading",lang:o},t.attestation_text),s.length>0&&r("p",{class:"small"},`${this.#e("text_gaps")}: ${s.join("; ")}`),r("p",{class:"small",part:"source"},`${this.#e("source")}: `,/^https?:/.test(d)?r("a",{href:d,target:"_blank",rel:"noopener noreferrer"},t.source_law):t.source_law)),r("button",{type:"submit",part:"button primary continue",class:"primary"},this.#e("continue"))),this.#S()),e&&this.#C(i,[[e,null]]),this.#G(a)}#V(e,t){let i=r("input",{id:`line-${t}`,part:"input",type:"text",maxlength:I,autocomplete:"off",autocapitalize:"characters",spellcheck:"false","aria-required":"true","aria-describedby":`text-${t} hint problem-${t}`,input:()=>{this.#i[t]=i.value,this.#E(e.digest)},change:()=>{let n=this.#y[t];i.value===n||!C.test(i.value)||(this.#y[t]=i.value,this.#M({line:t+1,event:n?"changed":"initialed"}))}});return i.value=this.#i[t]??"",i}#C(e,t){e.className="errors",e.setAttribute("part","errors"),e.replaceChildren(r("p",{class:"problem"},t.some(([,i])=>i)?this.#e("error_title"):t[0]?.[0]??""),r("ul",{},...t.map(([i,n])=>n&&r("li",{},m("link",i,()=>n.focus()))))),t.find(([,i])=>i)?.[1]?.focus()}#B(){let{notice:e,agreement:t,consent:i}=this.#t??{};if(!e)return;let n=r("div",{role:"alert"}),s=l=>r("input",{id:l,type:"checkbox",part:"checkbox","aria-required":"true"}),o=(l,h,g)=>r("div",{class:"check"},l,r("label",{for:l.id,lang:g},h??"")),[d,a]=[s("agreement"),s("consent")],p=l=>{l.preventDefault();let h=[[this.#e("agreement_missing"),d],[this.#e("consent_missing"),a]];for(let[,u]of h)u.setAttribute("aria-invalid",`${!u.checked}`);let g=h.filter(([,u])=>!u.checked);g.length?this.#C(n,g):this.#L("/acknowledge",{initials_per_line:[...this.#i],notice_version:e.version,notice_digest:e.digest,agreement:!0,consent:!0})};this.#r("review",this.#s(this.#e("review_title")),r("p",{},this.#e("review_intro")),n,r("form",{novalidate:!0,submit:p,part:"form"},this.#P(e,l=>r("p",{class:"field initials",part:"initials"},this.#i[l]??"")),r("fieldset",{part:"statement"},r("legend",{},this.#e("agreement_label")),o(d,t,e.language)),o(a,i,null),r("button",{type:"submit",part:"button primary accept",class:"primary"},this.#e("accept")),m("change",this.#e("change"),()=>this.#l())),this.#S()),this.#M({line:null,event:"reviewed"}),this.#R()}async#L(e,t){let{signal:i}=this.#a;this.#r("sending",this.#s(this.#e("sending")));let n=t;if(await this.#p(),e==="/acknowledge"){let s=await this.#R();s&&(n={...t,surface_digest:s})}i.aborted||await this.#$(e,n)}#R(){return import.meta.url.startsWith(`${this.baseUrl}/`)?(L??=T(import.meta.url),L):null}#F(e,t){let i=e.code==="invalid_client_token"?"unknown_intro":"problem",n=this.#e(e.code==="network_error"?"offline":i);this.#r("error",r("div",{role:"alert",class:"errors",part:"errors"},r("h2",{id:"title",part:"title",tabindex:"-1",class:"problem"},n)),i==="problem"?m("primary retry",this.#e("retry"),t):null,this.#i.length>0&&this.#t?.notice?m("change",this.#e("change"),()=>this.#l()):null)}#j(e){let{status:t,return_url:i}=e,n=t==="completed"?"done":t;this.#r(n,this.#s(this.#e(`${n}_title`)),r("p",{},this.#e(t==="completed"&&!e.ack_id?"done_identity":`${n}_intro`)),e.ack_id&&r("p",{},`${this.#e("ack_id_label")}: `,r("code",{part:"ack-id"},e.ack_id)),e.copy_url&&r("p",{},this.#T("copy",e.copy_url,this.#e("keep_copy"),"_blank")),i?r("p",{},this.#T("return",i,this.#e("return_to_vendor"))):null)}#D(){let e=this.#o.querySelector("input, button, a")??void 0;!this.required||this.#d==="done"?this.#n.setValidity({}):this.#n.setValidity({valueMissing:!0},this.#c.textContent||"…",e)}#G(e){let t=new Set;this.#g=new IntersectionObserver(i=>{for(let{target:n,isIntersecting:s,intersectionRatio:o,intersectionRect:d}of i){let a=o>=.5||d.height>=innerHeight/2;!s||!a||t.has(n)||(t.add(n),this.#M({line:[...e.children].indexOf(n)+1,event:"shown"}))}},{threshold:[0,.1,.2,.3,.4,.5]});for(let i of e.children)this.#g.observe(i)}#M(e){this.#h.push(e),clearTimeout(this.#u),this.#u=setTimeout(this.#p,R)}#p=()=>(clearTimeout(this.#u),this.#v=this.#v.then(()=>this.#J()),this.#v);async#J(){let e=this.#h.splice(0,P);if(!e.length)return;let t={width:innerWidth,height:innerHeight};try{await f(this.baseUrl,this.clientToken??"","/events",{events:e,viewport:t},this.#a.signal)}catch(i){i.retryable&&this.#h.unshift(...e)}}#b(e,t){this.dispatchEvent(new CustomEvent(`countersign-${e}`,{detail:t,bubbles:!0,composed:!0}))}},L;globalThis.customElements&&!customElements.get("countersign-notice")&&customElements.define("countersign-notice",k);export{k as CountersignNotice};
