import { hash } from 'node:crypto';

/** What runs in the browser: pages that follow what happens, clocks that go on, local times, and keys to search and to move. Everything works without it. */
export const script = `'use strict';
(() => {
  const live = document.querySelector('[data-live]');
  let renderedAt = performance.now();

  const pad = value => String(value).padStart(2, '0');
  function tick() {
    const passed = performance.now() - renderedAt;
    for (const clock of document.querySelectorAll('[data-elapsed]')) {
      const seconds = Math.floor((Number(clock.dataset.elapsed) + passed) / 1000);
      clock.textContent = Math.floor(seconds / 60) + ':' + pad(seconds % 60);
    }
  }

  function show(text) {
    const focused = document.activeElement;
    const at = focused && live.contains(focused) ? focused.id || focused.getAttribute('href') : null;
    const open = new Set([...live.querySelectorAll('details[open][id]')].map(each => each.id));
    live.innerHTML = text;
    renderedAt = performance.now();
    for (const each of live.querySelectorAll('details[id]')) if (open.has(each.id)) each.open = true;
    if (at) {
      const again = document.getElementById(at) || live.querySelector('[href="' + CSS.escape(at) + '"]');
      if (again) again.focus({ preventScroll: true });
    }
    tick();
    localize();
  }

  // Times stand there in UTC, which stays in their title.
  function localize() {
    for (const time of document.querySelectorAll('time[data-local]')) {
      const date = new Date(time.dateTime);
      const isToday = date.toDateString() === new Date().toDateString();
      time.textContent = date.toLocaleString([], isToday ? { timeStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' });
    }
  }

  function move(step) {
    const items = [...document.querySelectorAll('main tbody tr, .threads > li, .turn, .call, .verdict')];
    const at = items.findIndex(each => each.contains(document.activeElement));
    const item = items[at < 0 ? 0 : Math.max(0, Math.min(items.length - 1, at + step))];
    if (!item) return;
    const link = item.matches('.turn, .verdict') ? null : item.querySelector('a[href]');
    if (!link) item.tabIndex = -1;
    (link || item).focus();
    item.scrollIntoView({ block: 'nearest' });
  }

  if (live && window.EventSource) {
    const state = document.querySelector('[data-connection]');
    const say = (word, mood) => {
      if (!state) return;
      state.textContent = word;
      state.dataset.connection = mood;
    };
    let source;
    let isOver = false;
    function connect() {
      if (isOver || source) return;
      source = new EventSource(live.dataset.live);
      source.onerror = () => say(source && source.readyState === EventSource.CLOSED ? 'not live' : 'connecting', 'off');
      // The first message comes at once: from then on the page shows what is.
      source.onmessage = ({ data }) => {
        show(JSON.parse(data));
        say('live', 'on');
      };
      source.addEventListener('over', () => {
        isOver = true;
        leave('complete');
      });
    }
    function leave(word) {
      if (source) source.close();
      source = undefined;
      say(word, 'off');
    }
    // A browser has few connections to one server: pages that nobody looks at leave theirs to the others.
    document.addEventListener('visibilitychange', () => {
      if (document.hidden && !isOver) leave('paused');
      else if (!document.hidden) connect();
    });
    connect();
    addEventListener('pagehide', () => source && source.close());
    addEventListener('pageshow', event => {
      if (event.persisted) location.reload();
    });
  }

  tick();
  setInterval(tick, 1000);

  localize();
  addEventListener('keydown', event => {
    if (!['/', 'j', 'k'].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    if (event.key !== '/') return move(event.key === 'j' ? 1 : -1);
    const search = document.querySelector('input[type=search]');
    if (search) search.focus();
    else location.assign('/threads#search');
  });
  if (location.hash === '#search') document.querySelector('input[type=search]')?.focus();
})();
`;

const light = `color-scheme: light;
  --paper: #f6f7f9; --card: #ffffff; --raised: #eef1f5; --ink: #1a2029; --soft: #525d6d; --line: #dce1e8; --edge: #8a94a3;
  --accent: #3346c7; --on-accent: #ffffff; --accent-tint: #e9ecfd;
  --good: #12633a; --good-tint: #e2f4e9; --bad: #9c1c2a; --bad-tint: #fde8ea; --warn: #7d4400; --warn-tint: #fdf0db;
  --bar-a: #4357d6; --bar-b: #9aa5ee; --bar-c: #d99a2b;`;

const dark = `color-scheme: dark;
  --paper: #11141a; --card: #181d25; --raised: #222933; --ink: #e7ebf1; --soft: #a4afbf; --line: #2b333f; --edge: #6c7788;
  --accent: #a3b2ff; --on-accent: #10142a; --accent-tint: #232b4d;
  --good: #7fd8a5; --good-tint: #15301f; --bad: #ff9ca5; --bad-tint: #3b191e; --warn: #f2c078; --warn-tint: #36280f;
  --bar-a: #8594f2; --bar-b: #4a57a8; --bar-c: #e0aa4a;`;

const ground = `
* { box-sizing: border-box; }
html { font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); min-height: 100vh; display: flex; flex-direction: column; overflow-wrap: anywhere; }
main { width: 100%; max-width: 80rem; margin: 0 auto; padding: 1.75rem 1.25rem 3rem; flex: 1; }
main:focus { outline: none; }
main.narrow { max-width: 26rem; padding-top: 12vh; }
footer { border-top: 1px solid var(--line); color: var(--soft); font-size: .8rem; text-align: center; padding: .75rem 1rem; }
footer p { margin: 0; }
h1 { font-size: 1.6rem; line-height: 1.25; letter-spacing: -.01em; margin: 0 0 .35rem; }
h2 { font-size: 1.05rem; line-height: 1.35; margin: 0 0 .75rem; }
h3 { font-size: .95rem; margin: 0; }
.tight { margin: 0; }
p { margin: 0 0 .6rem; }
section { margin-top: 2rem; }
a { color: var(--accent); text-underline-offset: .15em; }
code, pre, .mono { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; font-size: .87em; }
.lede, .soft { color: var(--soft); }
.small { font-size: .85rem; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: .75rem; top: .75rem; z-index: 2; background: var(--card); padding: .5rem .9rem; border-radius: .4rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .2rem; }
.row { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; }
.apart { justify-content: space-between; }
.bidi { unicode-bidi: isolate; }
`;

const bar = `
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .35rem 1.5rem; padding: .55rem 1.25rem; background: var(--card); border-bottom: 1px solid var(--line); }
.brand { display: inline-flex; align-items: center; gap: .5rem; font-weight: 650; color: var(--ink); text-decoration: none; padding: .25rem 0; }
.mark-a { fill: var(--bar-a); } .mark-b { fill: var(--bar-b); }
nav { display: flex; flex-wrap: wrap; gap: .15rem; }
nav a { color: var(--soft); text-decoration: none; padding: .35rem .7rem; border-radius: .4rem; }
nav a:hover { background: var(--raised); color: var(--ink); }
nav a[aria-current] { color: var(--accent); background: var(--accent-tint); font-weight: 600; }
.who { margin-left: auto; display: flex; gap: .5rem; align-items: center; }
.switch { display: inline-flex; border: 1px solid var(--line); border-radius: .45rem; overflow: hidden; }
.switch button { border: 0; border-radius: 0; background: none; color: var(--soft); padding: .25rem .6rem; font-size: .8rem; font-weight: 400; }
.switch button:focus-visible { outline-offset: -2px; }
.switch button[aria-pressed=true] { background: var(--accent-tint); color: var(--accent); font-weight: 600; }
`;

const parts = `
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.15rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0 0; padding: 0; list-style: none; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.tile .name { color: var(--soft); font-size: .82rem; margin: 0; }
.tile .value { font-size: 1.55rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; margin: 0; font-variant-numeric: tabular-nums; }
.tile .note { color: var(--soft); font-size: .8rem; margin: 0; }
.stack { display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr); }
.columns { display: grid; gap: .9rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); align-items: start; }
.pill { display: inline-flex; align-items: baseline; gap: .3em; padding: .06rem .5rem; border-radius: .7rem; font-size: .8rem; font-weight: 600; max-width: 100%; background: var(--raised); color: var(--soft); } .about { display: block; min-width: 15rem; }
.pill.good { background: var(--good-tint); color: var(--good); } .pill.bad { background: var(--bad-tint); color: var(--bad); }
.pill.warn { background: var(--warn-tint); color: var(--warn); } .pill.busy { background: var(--accent-tint); color: var(--accent); }
.tag { display: inline-block; padding: .02rem .45rem; border: 1px solid var(--line); border-radius: .3rem; font-size: .8rem; color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 1.75rem; margin: .75rem 0 1rem; } .facts:last-child { margin-bottom: 0; }
.facts dt { color: var(--soft); font-size: .8rem; } .facts dd { margin: 0; font-variant-numeric: tabular-nums; }
.empty { border: 1px dashed var(--edge); border-radius: .6rem; padding: 1.5rem 1.25rem; color: var(--soft); }
.empty .lead { color: var(--ink); font-weight: 600; margin-bottom: .25rem; } .empty p:last-child { margin: 0; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: .8rem; font-weight: 600; color: var(--soft); white-space: nowrap; }
th, td { padding: .5rem .9rem; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: normal; }
tr:last-child td { border-bottom: 0; } td:first-child { min-width: 6.5rem; } .row + .scroll, .scroll + .row, .empty + .row { margin-top: .75rem; }
.call { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .1rem 1rem; }
.call .stage { font-size: 1.02rem; margin: 0; } .call .clock { font-size: 1.3rem; font-weight: 600; font-variant-numeric: tabular-nums; margin: 0; }
.call .button { align-self: center; } [name=decision] { white-space: normal; overflow-wrap: anywhere; } .call .soft { margin: 0; font-size: .85rem; }
.connection { font-size: .82rem; color: var(--soft); }
.connection::before { content: '●'; margin-right: .35em; color: var(--edge); }
.connection[data-connection=on]::before { color: var(--good); }
.notice { border-left: 3px solid var(--accent); background: var(--accent-tint); padding: .6rem .9rem; border-radius: .3rem; margin: 0 0 1rem; }
.notice.bad { border-color: var(--bad); background: var(--bad-tint); } .notice p { margin: 0; }
`;

const forms = `
button, .button { white-space: nowrap; max-width: 100%; font: inherit; font-size: .88rem; font-weight: 600; padding: .38rem .85rem; border-radius: .45rem; border: 1px solid var(--edge); background: var(--card); color: var(--ink); cursor: pointer; text-decoration: none; display: inline-block; }
button:hover, .button:hover { background: var(--raised); }
button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); } button.main:hover { filter: brightness(1.08); }
button.danger { border-color: var(--bad); color: var(--bad); } button.quiet { border-color: transparent; color: var(--soft); font-weight: 400; }
::placeholder { color: var(--soft); opacity: 1; }
input[type=search], input[type=password], input[type=text], select { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--edge); border-radius: .45rem; padding: .42rem .7rem; width: 100%; min-width: 0; }
label { font-size: .88rem; } label.above { display: block; margin-bottom: .3rem; font-weight: 600; }
.search { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.1rem 0; } .search > * { flex: 1 1 8.5rem; width: auto; } .search > [type=search] { flex: 3 1 14rem; max-width: 34rem; } .search > button { flex: none; }
.choice { display: flex; flex-wrap: wrap; gap: .3rem; align-items: center; }
.choice a { padding: .2rem .65rem; border-radius: .4rem; text-decoration: none; border: 1px solid var(--line); background: var(--card); font-size: .85rem; }
.choice a[aria-current] { background: var(--accent-tint); border-color: var(--accent); font-weight: 600; }
summary { cursor: pointer; } details > summary { width: fit-content; max-width: 100%; }
.login label { margin-top: 1rem; } .login button { margin: 1rem 0 1.1rem; width: 100%; padding: .55rem; } .login p:last-child { margin: 0; }
`;

const reading = `
.threads { list-style: none; margin: 0; padding: 0; display: grid; gap: .6rem; grid-template-columns: minmax(0, 1fr); }
.threads h2 { margin: 0 0 .15rem; font-size: 1rem; } .threads h2 a { text-decoration: none; } .threads h2 a:hover { text-decoration: underline; }
.threads .card p { margin: 0; } .snippet { margin-top: .4rem; color: var(--soft); border-left: 3px solid var(--line); padding-left: .7rem; unicode-bidi: plaintext; }
.turn { margin-top: 1rem; } .turn.user { background: var(--raised); }
.turn > header { display: flex; flex-wrap: wrap; gap: .2rem .75rem; align-items: baseline; margin-bottom: .6rem; }
.turn > header h2 { margin: 0; } .turn > header .soft { font-size: .82rem; }
.said { white-space: pre-wrap; unicode-bidi: plaintext; max-width: 46rem; } .said .head { font-weight: 650; }
.said .head { display: block; margin-top: .8rem; } .said > .head:first-child { margin-top: 0; } .said .gap { display: block; height: .65rem; }
.said .item { display: list-item; list-style: disc; margin-left: 1.2rem; } .said + pre, pre + .said, .said + .said { margin-top: .7rem; }
pre code { font-size: inherit; }
pre { margin: 0; overflow-x: auto; padding: .75rem .9rem; border: 1px solid var(--line); border-radius: .45rem; background: var(--paper); tab-size: 2; line-height: 1.45; overflow-wrap: normal; unicode-bidi: plaintext; max-height: 40rem; }
.files { list-style: none; margin: .9rem 0 0; padding: 0; display: grid; gap: .4rem; grid-template-columns: minmax(0, 1fr); font-size: .88rem; }
.files pre { margin-top: .5rem; } .add { color: var(--good); background: var(--good-tint); } .cut { color: var(--bad); background: var(--bad-tint); } .hunk { color: var(--soft); }
.diff { max-height: 60rem; } .diff code { display: grid; } .pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 .75rem; } .pair span, .hunk { white-space: pre-wrap; overflow-wrap: anywhere; min-height: 1.45em; } .void { background: var(--raised); }
mark { background: var(--warn-tint); color: var(--warn); font-weight: 600; border-radius: .2rem; } .turn:focus { outline: 2px solid var(--accent); }
.sources { margin: .9rem 0 0; padding: .7rem 0 0; border-top: 1px solid var(--line); font-size: .88rem; } .sources ol { margin: .3rem 0 0; padding-left: 1.3rem; }
img.shown { max-width: 100%; max-height: 20rem; border-radius: .4rem; }
.steps { list-style: none; margin: 0; } .steps.card { padding: .25rem 1.15rem; }
.steps li { display: grid; grid-template-columns: 5.5rem minmax(0, 1fr); gap: 0 1rem; padding: .6rem 0; border-bottom: 1px solid var(--line); } .steps li:last-child { border-bottom: 0; }
.steps .at { color: var(--soft); font-variant-numeric: tabular-nums; font-size: .85rem; padding-top: .1rem; } .steps p { margin: 0; } .steps ul { display: block; list-style: disc; padding-left: 1.1rem; margin: .2rem 0 0; } .steps ul li { display: list-item; padding: 0; border: 0; } .steps svg { display: block; width: 100%; height: .55rem; margin-top: .35rem; border-radius: .2rem; background: var(--raised); }
.fork { margin-top: .75rem; } .fork button { border-color: var(--line); } .actions { margin: .25rem 0 .5rem; } .plainlist { list-style: none; margin: 0; padding: 0; gap: .7rem; }
.summary .said { max-width: none; columns: 24rem 2; column-gap: 2.5rem; } .summary { margin-bottom: .9rem; }
.verdict .said { max-width: none; font-size: .93rem; } .verdict header { margin-bottom: .75rem; display: grid; gap: .3rem; }
.verdict svg { width: 100%; height: .4rem; background: var(--raised); border-radius: .2rem; }
`;

const charts = `
.chart { margin: 0; } .chart figcaption { font-weight: 600; margin-bottom: .1rem; } .chart .soft { font-size: .85rem; }
.plot { display: grid; grid-template-columns: auto minmax(0, 1fr); grid-template-rows: 9.5rem auto; gap: .25rem .6rem; margin-top: .6rem; font-size: .78rem; color: var(--soft); font-variant-numeric: tabular-nums; }
.plot .y { display: flex; flex-direction: column; justify-content: space-between; text-align: right; line-height: 1; }
.plot svg { width: 100%; height: 100%; overflow: visible; } .plot .x { grid-column: 2; display: flex; justify-content: space-between; }
.low .plot { grid-template-rows: 2.6rem auto; margin-top: .3rem; } .low figcaption { font-size: .85rem; } .columns.low { grid-template-columns: repeat(auto-fit, minmax(min(100%, 12rem), 1fr)); margin-bottom: .9rem; }
.grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.a { fill: var(--bar-a); } .b { fill: var(--bar-b); } .c { fill: var(--bar-c); } .bad-bar { fill: var(--bad); } .plain-bar { fill: var(--edge); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .82rem; color: var(--soft); margin-top: .5rem; } .legend svg { width: .7rem; height: .7rem; border-radius: .15rem; margin-right: .35rem; vertical-align: -.02rem; }
td svg.share { width: 7rem; height: .55rem; border-radius: .2rem; background: var(--raised); }
`;

const narrow = `
@media (max-width: 40rem) {
  main { padding: 1.25rem .9rem 2.5rem; } .bar { padding: .5rem .9rem; gap: .3rem .75rem; } h1 { font-size: 1.35rem; }
  .switch button { padding: .25rem .42rem; } .who { gap: .2rem; } .who .quiet { padding: .38rem .4rem; }
  nav { order: 3; width: 100%; } nav a { padding: .35rem .55rem; } .steps li { grid-template-columns: minmax(0, 1fr); }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); } 
  pre { white-space: pre-wrap; overflow-wrap: anywhere; } .pair { grid-template-columns: minmax(0, 1fr); } .pair .twin, .pair .void { display: none; }
  table, tbody, tr, td { display: block; } thead { position: absolute; clip-path: inset(50%); width: 1px; overflow: hidden; } .about { min-width: 0; } td.none { display: none; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); } tr:last-child { border-bottom: 0; }
  td:not(.none) { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: .75rem; padding: .2rem .9rem; border: 0; overflow-wrap: anywhere; } td::before { content: attr(data-label); color: var(--soft); font-size: .85rem; }
}
@media (prefers-reduced-motion: no-preference) { .pill.busy > span { animation: beat 1.6s ease-in-out infinite; } @keyframes beat { 50% { opacity: .25; } } }
@media print { .bar, .who, form, .skip { display: none; } .card { break-inside: avoid; } }
`;

/** The look of all pages. */
export const style = `:root { ${light} }
@media (prefers-color-scheme: dark) { :root { ${dark} } }
:root[data-theme=light] { ${light} }
:root[data-theme=dark] { ${dark} }
${ground}${bar}${parts}${forms}${reading}${charts}${narrow}`;

export interface Asset {
  /** Another one for other content, so that a browser may keep it for good. */
  path: string;
  type: string;
  text: string;
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#4357d6" d="M3 4h11a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H9l-4 4v-4H3z"/><path fill="#8b97e8" d="M19 9h2v10h-2v3l-3-3h-5l2-3h3a3 3 0 0 0 3-3z"/></svg>`;

/** What pages load, all of it from here. */
export const assets = {
  style: asset('style', 'css', 'text/css', style),
  script: asset('script', 'js', 'text/javascript', script),
  icon: asset('icon', 'svg', 'image/svg+xml', icon),
} as const;

function asset(name: string, ending: string, type: string, text: string): Asset {
  return { path: `/assets/${name}-${hash('sha256', text).slice(0, 12)}.${ending}`, type, text };
}
