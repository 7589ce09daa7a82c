// `npm run build:single`: the command line as one file, `dist.single/svc3`, that runs wherever Node 24 is.
import fs from 'node:fs'
import path from 'node:path'
import { build, type Plugin, stop } from 'esbuild'
import { isOperatorCommand, root } from './build.ts'

const wanted = 24
/** Before all else, in words that every Node understands. */
const banner = `#!/usr/bin/env node
if (Number(process.versions.node.split('.')[0]) < ${wanted}) {
  console.error('svc3: svc3 needs Node ${wanted} or newer, and this is Node ' + process.versions.node + ' (' + process.execPath + ').')
  console.error('svc3: install a newer one (nodejs.org, or brew install node), or put it first in PATH.')
  process.exit(1)
}`

/** In place of an operator command: a failure of the command line that says why there is none. */
const withoutOperator: Plugin = {
  name: 'without-operator',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.ts$/ }, ({ kind, path: target, resolveDir }) =>
      isOperatorCommand(kind, path.resolve(resolveDir, target)) ? { path: target, namespace: 'absent' } : undefined,
    )
    const message = 'this svc3 is the command line alone: it runs neither a service nor a node'
    const hint = 'install the whole of it: npm install -g, or docs/hosts-linux.md and docs/hosts-macos.md'
    const failure = JSON.stringify({ exitCode: 1, hint })
    const contents = `throw Object.assign(new Error(${JSON.stringify(message)}), ${failure})`
    onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents }))
  },
}

export async function buildSingle(file: string): Promise<void> {
  const draft = `${file}.${process.pid}.tmp`
  fs.mkdirSync(path.dirname(file), { recursive: true })
  await build({
    entryPoints: [path.join(root, 'src/bin/single.ts')],
    outfile: draft,
    bundle: true,
    minifySyntax: true,
    minifyWhitespace: true,
    format: 'cjs',
    platform: 'node',
    // Old Nodes have to be able to parse what they then refuse to run.
    target: 'node16',
    banner: { js: banner },
    plugins: [withoutOperator],
    // ws goes faster with them and works without.
    external: ['bufferutil', 'utf-8-validate'],
    logLevel: 'warning',
  })
  await stop()
  fs.chmodSync(draft, 0o755)
  fs.renameSync(draft, file)
}

if (import.meta.main) {
  const file = path.join(root, 'dist.single', 'svc3')
  await buildSingle(file)
  console.log(`wrote ${path.relative(process.cwd(), file)}`)
}
