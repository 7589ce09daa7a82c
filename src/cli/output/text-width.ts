// Measures and cuts texts in terminal columns, by a subset of Unicode's East Asian Width.

const ascii = /^[\x20-\x7e]*$/
const noRoom = /^(?:\p{M}|[\u200b-\u200d])$/u
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1faff}\u{20000}-\u{3fffd}]$/u

const characterWidth = (character: string): number => (noRoom.test(character) ? 0 : wide.test(character) ? 2 : 1)

export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

/** Cuts the text to the width, with "…" at the end if anything was cut. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width < 1) return ''
  let result = ''
  let used = 1
  for (const character of text) {
    used += characterWidth(character)
    if (used > width) break
    result += character
  }
  return `${result}…`
}
