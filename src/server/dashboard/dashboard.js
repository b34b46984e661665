const live = document.querySelector('[data-live]');
let renderedAt = performance.now();

function tick() {
  const passed = performance.now() - renderedAt;
  for (const clock of document.querySelectorAll('[data-elapsed]')) {
    const seconds = Math.floor((Number(clock.dataset.elapsed) + passed) / 1000);
    clock.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  }
}

function show(text) {
  const focused = document.activeElement;
  const at = focused && live.contains(focused) ? focused.id || focused.getAttribute('href') : null;
  live.innerHTML = text;
  renderedAt = performance.now();
  const again = at && (document.getElementById(at) || live.querySelector(`[href="${CSS.escape(at)}"]`));
  if (again) again.focus({ preventScroll: true });
  tick();
  localize();
}

// Times stand there in UTC, which stays in their title.
function localize() {
  for (const time of document.querySelectorAll('time[data-local]')) {
    const date = new Date(time.dateTime);
    const isToday = date.toDateString() === new Date().toDateString();
    const style = isToday ? { timeStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' };
    time.textContent = date.toLocaleString([], style);
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
    source.onerror = () =>
      say(source && source.readyState === EventSource.CLOSED ? 'disconnected' : 'connecting', 'off');
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
  addEventListener('pagehide', () => source?.close());
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
