// Says in a box what is waited for, and how long already, until it is there.
(() => {
  const began = Date.now(), box = document.createElement('div');
  box.id = 'syncscan-waiting';
  box.setAttribute('role', 'status');
  box.style.cssText = 'position:fixed;left:50%;top:45%;transform:translate(-50%,-50%);z-index:9;max-width:34em;padding:1em 1.5em;' +
    'font:15px/1.5 system-ui,sans-serif;color:#222;background:#fff;border:1px solid #999;border-radius:6px;text-align:center';
  const there = {
    'a view': () => document.querySelector('iframe'),
    'a trace': () => (document.querySelector('tr-ui-timeline-view') || {}).model,
  }[waiting.until];

  const timer = setInterval(() => {
    if (there()) {
      clearInterval(timer);
      box.remove();
      return;
    }
    const seconds = Math.round((Date.now() - began) / 1000);
    if (seconds < 2 || !document.body) return;
    box.textContent = `${waiting.said} (${seconds} s)`;
    document.body.append(box);
  }, 500);
})();
