/** The look of the documentation page; one string, because the page's policy names its hash. */
export const docsStyle = `
:root {
  color-scheme: light dark;
  --page: light-dark(#fbfaf8, #14161a);
  --card: light-dark(#ffffff, #1b1e24);
  --line: light-dark(#e5e1da, #2d323b);
  --text: light-dark(#22242a, #e6e4df);
  --soft: light-dark(#666a73, #9aa0ab);
  --code: light-dark(#f4f1ec, #12141a);
  --accent: light-dark(#0d6b5f, #4fd1bd);
  --get: light-dark(#0b6e4f, #56d6a5);
  --post: light-dark(#1d5fbf, #7fb2ff);
  --put: light-dark(#9a5b00, #f0b75c);
  --delete: light-dark(#b3261e, #ff8f86);
  --toll: light-dark(#7b4fc9, #c7a8ff);
  --mono: ui-monospace, 'SF Mono', 'Cascadia Code', Menlo, Consolas, 'DejaVu Sans Mono', monospace;
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.6 system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif;
}
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre, .path { font-family: var(--mono); font-size: 0.87em; }
code { background: var(--code); border-radius: 4px; padding: 0.1em 0.35em; overflow-wrap: anywhere; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 0.8rem 1rem; overflow-x: auto; margin: 0.4rem 0 0; }
pre code { background: none; padding: 0; overflow-wrap: normal; }
.layout { display: grid; grid-template-columns: 19rem minmax(0, 1fr); max-width: 86rem; margin: 0 auto; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.6rem 1rem 2rem 1.5rem; border-right: 1px solid var(--line); }
nav h1 { font-size: 1.15rem; margin: 0; letter-spacing: -0.01em; }
nav h1 small { color: var(--soft); font-weight: 400; font-size: 0.8rem; margin-left: 0.35rem; }
nav h2 { font-size: 0.72rem; letter-spacing: 0.06em; text-transform: uppercase; color: var(--soft); margin: 1.3rem 0 0.3rem; font-weight: 600; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: 0.16rem 0.5rem; margin-left: -0.5rem; border-radius: 6px; color: var(--text); font-size: 0.86rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
nav li a:hover { background: var(--code); text-decoration: none; }
#filter { width: 100%; margin-top: 1rem; padding: 0.45rem 0.7rem; font: inherit; font-size: 0.9rem; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
#filter:focus { outline: 2px solid var(--accent); outline-offset: -1px; }
main { padding: 2rem 2.5rem 6rem; min-width: 0; }
.intro { max-width: 46rem; }
.intro h2 { font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.02em; margin: 0 0 0.6rem; text-wrap: balance; }
.guide { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1rem; margin: 1.6rem 0 0; }
.guide section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1rem 1.2rem; }
.guide h3 { margin: 0 0 0.3rem; font-size: 0.95rem; }
.guide p { margin: 0 0 0.5rem; font-size: 0.9rem; color: var(--soft); }
.guide p:last-child { margin: 0; }
.area { margin-top: 2.6rem; }
.area > h2 { font-size: 1.15rem; margin: 0 0 0.7rem; letter-spacing: -0.01em; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin-bottom: 0.5rem; }
summary { cursor: pointer; list-style: none; display: grid; grid-template-columns: 4.2rem minmax(0, 1fr) auto; gap: 0.1rem 0.8rem; align-items: baseline; padding: 0.6rem 1rem; border-radius: 10px; }
summary::-webkit-details-marker { display: none; }
summary:hover { background: var(--code); }
summary .path { overflow-wrap: anywhere; font-weight: 600; }
summary .says { grid-column: 2 / -1; color: var(--soft); font-size: 0.9rem; }
summary .tags { display: flex; gap: 0.35rem; }
.param { color: var(--accent); }
.method { font: 700 0.7rem/1.7 var(--mono); letter-spacing: 0.03em; text-align: center; border-radius: 5px; border: 1px solid currentColor; padding: 0 0.3rem; }
.get { color: var(--get); } .post { color: var(--post); } .put, .patch { color: var(--put); } .delete { color: var(--delete); }
nav .method { border: 0; padding: 0; display: inline-block; width: 2.6rem; text-align: left; font-size: 0.62rem; }
.tag { font-size: 0.72rem; line-height: 1.7; border-radius: 99px; padding: 0 0.55rem; background: var(--code); color: var(--soft); white-space: nowrap; }
.tag.paid { color: var(--toll); background: none; border: 1px solid currentColor; line-height: 1.55; }
.body { scroll-margin-top: 5rem; padding: 0.2rem 1.2rem 1.3rem; border-top: 1px solid var(--line); }
.body h3 { font-size: 0.78rem; letter-spacing: 0.05em; text-transform: uppercase; color: var(--soft); margin: 1.3rem 0 0.2rem; }
.body h3 code { text-transform: none; letter-spacing: 0; }
.body p { margin: 0.7rem 0 0; max-width: 50rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th { text-align: left; font-weight: 600; font-size: 0.75rem; color: var(--soft); padding: 0.3rem 1rem 0.3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td { vertical-align: top; padding: 0.35rem 1rem 0.35rem 0; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
td:first-child { width: 28%; white-space: nowrap; font-family: var(--mono); font-size: 0.83rem; }
td.type { font-family: var(--mono); font-size: 0.83rem; color: var(--accent); width: 24%; min-width: 9rem; overflow-wrap: anywhere; }
td:last-child { min-width: 15rem; }
td .bounds { display: block; color: var(--soft); font-size: 0.8rem; overflow-wrap: anywhere; }
.d1 { padding-left: 1.1rem; } .d2 { padding-left: 2.2rem; } .d3 { padding-left: 3.3rem; } .d4, .d5 { padding-left: 4.4rem; }
.must { color: var(--delete); font-weight: 700; }
.parent { color: var(--soft); font-weight: 400; }
.status { font-family: var(--mono); }
[hidden] { display: none !important; }
@media (max-width: 60rem) {
  .layout { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 1.2rem 1.2rem 1rem; }
  nav .list { display: none; }
  main { padding: 1.2rem 1.2rem 4rem; }
  summary { grid-template-columns: 4.2rem minmax(0, 1fr); }
  summary .tags, summary .says { grid-column: 2; }
}
`

/** Hides the endpoints that do not match the typed words; the page is complete without it. */
export const docsScript = `
const filter = document.getElementById('filter')
const items = [...document.querySelectorAll('[data-words]')]
const groups = [...document.querySelectorAll('[data-group]')]
const nothing = document.getElementById('nothing')
filter.hidden = false
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\\s+/).filter(Boolean)
  for (const item of items) item.hidden = !words.every((word) => item.dataset.words.includes(word))
  for (const group of groups) group.hidden = !group.querySelector('[data-words]:not([hidden])')
  nothing.hidden = items.some((item) => !item.hidden)
})
`
