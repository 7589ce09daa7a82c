// Replaces the style elements that xterm creates, which the Content Security Policy forbids, by constructed style
// sheets. xterm has no option for this, so the build patches it (scripts/build-console.ts).

export function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets.push(sheet)
  // An inert element that takes the position of the style element.
  const place = document.createElement('template')
  Object.defineProperty(place, 'textContent', { set: (rules: string) => sheet.replaceSync(rules) })
  place.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    Element.prototype.remove.call(place)
  }
  return place
}
