// What the languages differ in, as far as reading their strings and comments goes.

export interface Language {
  /** What begins a comment up to the end of the line; `#` only after a blank. */
  readonly comments: readonly ('//' | '#')[]
  readonly blocks?: readonly [open: string, close: string]
  /** Quotes whose strings may have line ends. */
  readonly multiline: readonly string[]
  /** Quotes whose strings have no escapes and nothing put in. */
  readonly raw: readonly string[]
  /** What begins something that is put in, beside `{name}` and `%s`. */
  readonly insertions: readonly ('${' | '#{' | '\\(' | '$name' | '$(')[]
  /** Strings with this letter before them take whole expressions in braces. */
  readonly bracePrefix?: RegExp
  /** `.` joins texts. */
  readonly dotJoins?: boolean
  /** Texts next to each other are one. */
  readonly adjacentJoin?: boolean
  /** Braces hold settings, not statements. */
  readonly bracesAreData?: boolean
  /** `call(…) { … }`: what is in the braces belongs to the call. */
  readonly trailingClosures?: boolean
  /** What belongs together is told by indentation or words, not by braces. */
  readonly isIndented?: boolean
  /** Constants stand inside of classes, and say that they are constants. */
  readonly hasClasses?: boolean
}

const slash = { comments: ['//'], blocks: ['/*', '*/'], multiline: [], raw: [], insertions: [] } as const
const triple = ['"""', "'''"] as const

export const languages = {
  java: { ...slash, multiline: triple, hasClasses: true },
  kotlin: { ...slash, multiline: triple, insertions: ['${', '$name'], hasClasses: true, trailingClosures: true },
  groovy: { ...slash, multiline: triple, insertions: ['${', '$name'], trailingClosures: true },
  csharp: { ...slash, multiline: triple, bracePrefix: /\$@*$/, hasClasses: true },
  go: { ...slash, multiline: ['`'], raw: ['`'] },
  script: { ...slash, multiline: ['`'], insertions: ['${'] },
  swift: { ...slash, multiline: triple, insertions: ['\\('], trailingClosures: true },
  php: { ...slash, comments: ['//', '#'], insertions: ['${', '$name'], dotJoins: true },
  c: { ...slash, adjacentJoin: true },
  python: { comments: ['#'], multiline: triple, raw: [], insertions: [], bracePrefix: /[fF][rR]?$|[rR][fF]$/, adjacentJoin: true, isIndented: true },
  ruby: { comments: ['#'], multiline: [], raw: [], insertions: ['#{'], adjacentJoin: true, isIndented: true },
  perl: { comments: ['#'], multiline: [], raw: ["'"], insertions: ['${', '$name'], dotJoins: true },
  powershell: { comments: ['#'], blocks: ['<#', '#>'], multiline: [], raw: ["'"], insertions: ['$(', '${', '$name'] },
  settings: { comments: ['#'], multiline: triple, raw: [], insertions: ['${', '$('], bracesAreData: true },
} as const satisfies Record<string, Language> // biome-ignore format: a table

export type LanguageName = keyof typeof languages
