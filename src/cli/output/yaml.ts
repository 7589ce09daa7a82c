// Records as YAML for `-o yaml`. Writing needs a page; loading a package that can also read costs a command 15 ms.
// A test reads what this writes with that package.

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** What JSON leaves out, such as undefined, is left out here too. */
export function toYaml(value: unknown): string {
  const plain = JSON.parse(JSON.stringify(value)) as Json
  return block(plain)
    .map((line) => `${line}\n`)
    .join('')
}

/** The lines of a value that begins on a line of its own. */
function block(value: Json): string[] {
  if (typeof value !== 'object' || value === null || isScalar(value)) return [scalar(value)]
  if (Array.isArray(value)) {
    return value.flatMap((item: Json) => block(item).map((line, index) => (index === 0 ? `- ${line}` : `  ${line}`)))
  }
  return Object.entries(value).flatMap(([key, field]: [string, Json]) =>
    isScalar(field)
      ? [`${scalar(key)}: ${scalar(field)}`]
      : [`${scalar(key)}:`, ...block(field).map((line) => `  ${line}`)],
  )
}

/** Empty collections are written on one line, as in JSON. */
const isScalar = (value: Json): boolean =>
  typeof value !== 'object' || value === null || Object.keys(value).length === 0

/** Begins with a letter and has nothing in it that means something: no reader takes it for anything but text. */
const plainText = /^[a-z_/][\w./@+-]*(?::[\w./@+-]+)*$/i
/** Except for these, which some readers take for truth values or numbers. */
const notText = /^(?:true|false|null|yes|no|on|off|y|n|e\d.*)$/i

/** Everything in doubt is quoted as in JSON, which YAML reads alike. */
function scalar(value: Json): string {
  const isPlain = typeof value === 'string' && plainText.test(value) && !notText.test(value)
  return isPlain ? value : JSON.stringify(value).replace(lineBreaks, (character) => escaped(character))
}

/** Line breaks to YAML that JSON leaves as they are. */
const lineBreaks = /[\u0085\u2028\u2029\ufeff\u007f]/g
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
