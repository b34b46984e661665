/** What runs in the browser: pages that follow what happens, clocks that go on, and a key for searching. Everything works without it. */
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

  addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    const search = document.querySelector('input[type=search]');
    if (!search || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
  });
})();
`;
