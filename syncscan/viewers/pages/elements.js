// Gives Chrome's trace viewer of 2020 what browsers have dropped since: custom elements and shadow roots, version 0.
// Its own import is put into the page by the server, so HTML imports aren't needed.

// Without this the viewer takes the browser for one that has all of version 0.
window.CustomElements = {hasNative: false, useNative: true, instanceof: (object, kind) => object instanceof kind};
window.wrap = window.unwrap = node => node;
Object.defineProperty(document, '_currentScript', {get: () => document.currentScript});
Object.defineProperty(Event.prototype, 'path', {get() { return this.composedPath(); }});

document.registerElement = (name, {prototype = Object.create(HTMLElement.prototype), extends: base} = {}) => {
  const Base = base ? document.createElement(base).constructor : HTMLElement;
  function Made() {
    const element = Reflect.construct(Base, [], Made);
    if (prototype.createdCallback) prototype.createdCallback.call(element);
    return element;
  }
  Object.setPrototypeOf(Made, Base);
  prototype.connectedCallback = prototype.attachedCallback;
  prototype.disconnectedCallback = prototype.detachedCallback;
  Made.prototype = prototype;
  customElements.define(name, Made, base ? {extends: base} : undefined);
  return Made;
};

// In version 1 an element that createElement makes must come out empty; one that is cloned may fill itself at once.
const create = document.createElement;
document.createElement = function (name, options) {
  if (name === 'overlay') return create.call(this, 'div', options); // only some elements take a shadow root now
  if (!customElements.get(String(name).toLowerCase())) return create.call(this, name, options);
  const shell = create.call(this, 'template');
  shell.innerHTML = `<${name}></${name}>`;
  return document.importNode(shell.content, true).firstChild;
};

Element.prototype.createShadowRoot = function () {
  const root = this.attachShadow({mode: 'open'});
  const openSlots = () => root.querySelectorAll('content').forEach(c => c.replaceWith(create.call(document, 'slot')));
  new MutationObserver(openSlots).observe(root, {childList: true});
  return root;
};

addEventListener('DOMContentLoaded', () => document.dispatchEvent(new Event('WebComponentsReady', {bubbles: true})));
