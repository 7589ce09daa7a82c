// `npm run build`: bundles the program into dist/, so that `bin/svc3` starts as fast as Node itself does. The command
// line is one file of CommonJS: every further file costs it a millisecond, the loader of modules nine. What it starts
// is split at each import().
import fs from 'node:fs'
import path from 'node:path'
import { type BuildOptions, build, type Plugin, stop, transform } from 'esbuild'
import { swaggerFiles } from '../src/server/browser/swagger.ts'
import { buildClient } from './build-client.ts'
import { buildConsole, consolePackages } from './build-console.ts'
import { packageOf, writeInventory } from './build-inventory.ts'
import { programStamp, root } from './sources.ts'

export { root }

const inRoot = (file: string): string => path.join(root, file)

const firstFile = inRoot('src/bin/svc3.ts')
const commandLine = inRoot('src/cli/process.ts')
/** Files that run in threads of their own. */
const threads = [
  'src/store/sqlite/sqlite-thread.ts',
  'src/images/pack/pack-thread.ts',
  'src/operator/dev-nodes-thread.ts',
].map(inRoot)

const isOperatorCommand = (kind: string, file: string): boolean =>
  kind === 'dynamic-import' && file.startsWith(inRoot('src/operator/'))

/**
 * The command line is loaded by its first file, once compiled code is kept; operator commands are programs of their
 * own, found by their import().
 */
const apart = (programs: Set<string>): Plugin => ({
  name: 'apart',
  setup({ onResolve }) {
    onResolve({ filter: /\.ts$/ }, ({ kind, path: target, resolveDir }) => {
      const file = path.resolve(resolveDir, target)
      const name = path.basename(file, '.ts')
      if (file === commandLine && kind === 'import-statement') return { path: `./${name}.cjs`, external: true }
      if (!isOperatorCommand(kind, file)) return undefined
      programs.add(file)
      return { path: `./${name}.mjs`, external: true }
    })
  },
})

/**
 * oidc-provider finds its settings and its records by the names of its classes, which a bundle may change. Names are kept
 * there alone: elsewhere it would cost every request to name the functions that it makes.
 */
const namedProvider: Plugin = {
  name: 'named-provider',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]node_modules[\\/]oidc-provider[\\/].*\.js$/ }, async ({ path: file }) => ({
      contents: (await transform(fs.readFileSync(file, 'utf8'), { keepNames: true, target: shared.target })).code,
    }))
  },
}

/** ssh2 goes faster with it and works without; it would have to be compiled. */
const native = ['cpu-features', './crypto/build/Release/sshcrypto.node']

const shared = {
  outbase: inRoot('src'),
  entryNames: '[name]',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  minifySyntax: true,
  minifyWhitespace: true,
  platform: 'node',
  target: 'node24',
  logLevel: 'warning',
  metafile: true,
} as const satisfies BuildOptions
const commonJs = {
  ...shared,
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  define: { 'import.meta.dirname': '__dirname' },
} as const satisfies BuildOptions
// CommonJS packages inside an ES module bundle still call require() for Node's own modules.
const modules = {
  ...shared,
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  splitting: true,
  banner: {
    js: "import { createRequire as $require } from 'node:module';const require = $require(import.meta.url), __dirname = import.meta.dirname;",
  },
} as const satisfies BuildOptions

export async function buildProgram(): Promise<void> {
  const outdir = inRoot(`dist.${process.pid}`)
  // Taken before the build starts: a change during the build is built the next time.
  const stamp = programStamp()
  const pages = buildConsole(path.join(outdir, 'console'), inRoot('dist/console'))
  const programs = new Set<string>()
  const entryPoints = [firstFile, commandLine]
  const commandLineBuild = await build({ ...commonJs, outdir, entryPoints, plugins: [apart(programs)] })
  const modulesBuild = await build({
    ...modules,
    outdir,
    entryPoints: [...programs, ...threads],
    plugins: [namedProvider],
    external: native,
  })
  await buildClient(path.join(outdir, 'client'))
  await pages
  // An installed svc3 has no packages, so files that are served unchanged go with the bundles.
  fs.mkdirSync(path.join(outdir, 'swagger-ui'))
  for (const name of Object.keys(swaggerFiles))
    fs.copyFileSync(inRoot(`node_modules/swagger-ui-dist/${name}`), path.join(outdir, 'swagger-ui', name))
  await stop()
  const files = [commandLineBuild, modulesBuild].flatMap(({ metafile }) => Object.keys(metafile.inputs))
  const packages = [...files, 'node_modules/swagger-ui-dist/x'].flatMap((file) => packageOf(file) ?? [])
  writeInventory(outdir, [...packages, ...consolePackages(path.join(outdir, 'console'))])
  fs.writeFileSync(path.join(outdir, '.sources'), stamp)
  replaceFolder(outdir, inRoot('dist'))
}

/** A running server keeps the files it has open; new starts see either the old folder or the new one. */
function replaceFolder(next: string, current: string): void {
  const old = `${current}.old.${process.pid}`
  if (fs.existsSync(current)) fs.renameSync(current, old)
  fs.renameSync(next, current)
  fs.rmSync(old, { recursive: true, force: true })
}

if (import.meta.main) await buildProgram()
