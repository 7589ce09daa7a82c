// `npm run build`: bundles the program into dist/, so that `bin/svc3` starts as fast as Node itself does.
// Commands are loaded when they are called: esbuild splits at every dynamic import().
import fs from 'node:fs'
import path from 'node:path'
import { build, stop } from 'esbuild'

export const root = path.resolve(import.meta.dirname, '..')

export async function buildProgram(): Promise<void> {
  const next = path.join(root, `dist.${process.pid}`)
  await build({
    entryPoints: [path.join(root, 'src/bin/svc3.ts'), path.join(root, 'src/store/sqlite-thread.ts')],
    outdir: next,
    outbase: path.join(root, 'src'),
    entryNames: '[name]',
    chunkNames: 'chunks/[name]-[hash]',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    minifySyntax: true,
    minifyWhitespace: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // CommonJS packages inside an ES module bundle still call require() for Node's own modules.
    banner: {
      js: "import { createRequire as $require } from 'node:module';const require = $require(import.meta.url);",
    },
    logLevel: 'warning',
  })
  await stop()
  replaceFolder(next, path.join(root, 'dist'))
}

/** A running server keeps the files it has open; new starts see either the old folder or the new one. */
function replaceFolder(next: string, current: string): void {
  const old = `${current}.old.${process.pid}`
  if (fs.existsSync(current)) fs.renameSync(current, old)
  fs.renameSync(next, current)
  fs.rmSync(old, { recursive: true, force: true })
}

if (import.meta.main) await buildProgram()
