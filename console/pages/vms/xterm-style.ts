// In place of the style elements of xterm, which the page's policy forbids: the same rules, set through the CSSOM. The build
// puts this into xterm (scripts/build-console.ts), because it has no option for it.

export function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets.push(sheet)
  // It takes the place in the tree, and shows nothing.
  const place = document.createElement('template')
  Object.defineProperty(place, 'textContent', { set: (rules: string) => sheet.replaceSync(rules) })
  place.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    Element.prototype.remove.call(place)
  }
  return place
}
