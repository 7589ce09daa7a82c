// The web console, built by Vite into a folder of plain files: hashed assets, each with a brotli copy beside it.
// Nothing is rebuilt while its sources are the same.
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import { build, type Plugin, parseAst } from 'vite'
import { packageOf } from './build-inventory.ts'
import { schemaStubs } from './schema-stubs.ts'
import { root, stampOf } from './sources.ts'

const sources = [
  'console',
  'src/api',
  'src/rules',
  'src/client',
  'package-lock.json',
  'scripts/build-console.ts',
  'scripts/build-inventory.ts',
  'scripts/schema-stubs.ts',
]

/** The page checks no schemas, the service does. */
const withoutSchemas: Plugin = {
  name: 'without-schemas',
  enforce: 'pre',
  resolveId: (id) => (id === 'typebox' ? '\0typebox' : undefined),
  load(id) {
    return id === '\0typebox' ? schemaStubs : undefined
  },
}

interface Syntax {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly key?: { readonly name?: string }
  readonly value?: unknown
}

const isSyntax = (value: unknown): value is Syntax => typeof value === 'object' && value !== null && 'type' in value

const isText = /^(Literal|TemplateLiteral|BinaryExpression)$/

/** Values of `example` and `description`, with what is enough in their place. */
function* superfluous(syntax: Syntax): Generator<readonly [from: number, to: number, less: string]> {
  const { type, key, value } = syntax
  if (type === 'Property' && isSyntax(value)) {
    const isExample = key?.name === 'example' && value.type === 'ObjectExpression'
    if (isExample || (key?.name === 'description' && isText.test(value.type)))
      return yield [value.start, value.end, isExample ? '{}' : "''"]
  }
  for (const part of Object.values(syntax))
    for (const each of [part].flat()) if (isSyntax(each)) yield* superfluous(each)
}

/** Examples and descriptions are for the API's documents: pages show neither, and do not load them. */
const withoutExamples: Plugin = {
  name: 'without-examples',
  enforce: 'pre',
  transform(code, id) {
    if (!/\/src\/api\/.*\.ts$/.test(id)) return undefined
    let changed = code
    // From the end, so that places before it stay where they are.
    for (const [from, to, less] of [...superfluous(parseAst(code, { lang: 'ts' }))].toReversed())
      changed = changed.slice(0, from) + less + changed.slice(to)
    return { code: changed, map: null }
  },
}

/**
 * xterm makes style elements and style attributes, which a strict policy forbids; what it does with them can be done through
 * the CSSOM, which that allows. What is replaced has to be there: another version of xterm is looked at again.
 */
const xtermStyles: readonly (readonly [from: RegExp, to: string, times: number])[] = [
  [/[\w.]+\.createElement\("style"\)/g, 'styleElement()', 3],
  [
    /(\w)\.setAttribute\("style",`\$\{\1\.getAttribute\("style"\)\|\|""\}\$\{(\w)\};`\)/g,
    '$1.style.cssText+=";"+$2',
    1,
  ],
]
const withoutInlineStyles: Plugin = {
  name: 'without-inline-styles',
  transform(code, id) {
    if (!id.endsWith('/@xterm/xterm/lib/xterm.mjs')) return undefined
    let changed = code
    for (const [from, to, times] of xtermStyles) {
      const found = changed.match(from)?.length ?? 0
      if (found !== times)
        throw new Error(`xterm has ${from} ${found} times and not ${times}: how does it set styles now?`)
      changed = changed.replaceAll(from, to)
    }
    const module = JSON.stringify(path.join(root, 'console/pages/vms/xterm-style.ts'))
    return { code: `import { styleElement } from ${module}\n${changed}`, map: null }
  },
}

const packagesFile = '.packages'
/** As `packageOf` gives them. */
export const consolePackages = (outDir: string): string[] =>
  JSON.parse(fs.readFileSync(path.join(outDir, packagesFile), 'utf8')) as string[]

/** Kept beside the console, for builds that reuse it unchanged. */
const listPackages = (outDir: string, assets: string[] = []): Plugin => ({
  name: 'list-packages',
  // Fonts are no modules: they are known as files of the bundle.
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) if (file.type === 'asset') assets.push(...file.originalFileNames)
  },
  closeBundle() {
    const files = [...this.getModuleIds(), ...assets.map((name) => path.resolve(root, 'console', name))]
    const found = new Set(files.flatMap((id) => packageOf(id.replace(/^\0|\?.*$/g, '')) ?? []))
    fs.writeFileSync(path.join(outDir, packagesFile), JSON.stringify([...found].sort()))
  },
})

interface Modules {
  getModuleInfo(id: string): { readonly isEntry: boolean; readonly importers: readonly string[] } | null
}

/**
 * Which file a module goes into: one for what the first page cannot be shown without, one for what several other pages share
 * (left to itself that becomes thirty), and one for each page.
 */
function fileFor() {
  const known = new Map<string, boolean>()
  const isFirst = (id: string, modules: Modules): boolean => {
    const before = known.get(id)
    if (before !== undefined) return before
    // Modules that import each other count as needed only if a module outside of the cycle needs them.
    known.set(id, false)
    const info = modules.getModuleInfo(id)
    const answer = info !== null && (info.isEntry || info.importers.some((importer) => isFirst(importer, modules)))
    known.set(id, answer)
    return answer
  }
  return (id: string, modules: Modules): string | null =>
    !/\.(ts|tsx|js|mjs)$/.test(id) || id.endsWith('main.tsx')
      ? null
      : isFirst(id, modules)
        ? 'first'
        : ofOnePage.test(id)
          ? null
          : 'later'
}
const ofOnePage = /@novnc|@xterm|uplot|\/src\/(legacy|oci)\/|\/src\/api\/index\.ts|\/console\/pages\//

/** Builds into `outDir`, or copies what `previous` has when that was made of the same sources. */
export async function buildConsole(outDir: string, previous: string): Promise<void> {
  const stamp = stampOf(sources)
  const stampFile = path.join(previous, '.sources')
  if (fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === stamp) {
    fs.cpSync(previous, outDir, { recursive: true })
    return
  }
  await build({
    configFile: false,
    root: path.join(root, 'console'),
    // Relative, so that the console works below any prefix.
    base: './',
    logLevel: 'warn',
    plugins: [withoutSchemas, withoutExamples, withoutInlineStyles, listPackages(outDir)],
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 1_000,
      // Directives of frameworks that render on servers mean nothing here.
      rolldownOptions: {
        checks: { moduleLevelDirective: false, bundlerTimings: false },
        output: { codeSplitting: { groups: [{ name: fileFor() }] } },
      },
    },
  })
  await compressAll(path.join(outDir, 'assets'))
  fs.writeFileSync(path.join(outDir, '.sources'), stamp)
}

async function compressAll(folder: string): Promise<void> {
  const compress = promisify(brotliCompress)
  const names = fs.readdirSync(folder).filter((name) => /\.(js|css|svg)$/.test(name))
  await Promise.all(
    names.map(async (name) => {
      const bytes = fs.readFileSync(path.join(folder, name))
      const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
      fs.writeFileSync(path.join(folder, `${name}.br`), await compress(bytes, { params }))
    }),
  )
}
