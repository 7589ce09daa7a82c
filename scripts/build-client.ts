// `svc3/client` of the npm package: one module of plain ES2022 without imports, and its declarations.
import fs from 'node:fs'
import path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { publishedOperations } from '../src/api/index.ts'
import type { Operation } from '../src/api/operation.ts'
import { clientTypes } from './client-types.ts'
import { schemaStubs } from './schema-stubs.ts'
import { root } from './sources.ts'

const folder = path.join(root, 'src/client/npm')

/** What a client needs of an operation. */
const row = ({ id, noun, method, path: address, produces, consumes, also, ...rest }: Operation) => {
  const { isUpgrade, isUpload, isDownload } = rest
  return { id, noun, method, path: address, produces, consumes, also, isUpgrade, isUpload, isDownload }
}

/** The table without texts, examples and schemas. */
const slim: Plugin = {
  name: 'slim',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^typebox$/ }, () => ({ path: 'typebox', namespace: 'stubs' }))
    onLoad({ filter: /.*/, namespace: 'stubs' }, () => ({ contents: schemaStubs }))
    const contents = `export const publishedOperations = ${JSON.stringify(publishedOperations.map(row))}`
    onLoad({ filter: /[\\/]src[\\/]api[\\/]index\.ts$/ }, () => ({ contents }))
  },
}

export async function buildClient(outdir: string): Promise<void> {
  await build({
    entryPoints: [path.join(folder, 'index.ts')],
    outfile: path.join(outdir, 'index.js'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    charset: 'utf8',
    plugins: [slim],
    logLevel: 'warning',
  })
  const source = (name: string): string => fs.readFileSync(path.join(folder, name), 'utf8')
  const declarations = {
    'index.d.ts': source('declared.ts'),
    'operations.d.ts': clientTypes(),
    'options.d.ts': source('options.ts'),
  }
  for (const [name, text] of Object.entries(declarations))
    fs.writeFileSync(path.join(outdir, name), text.replace(/'(\.\/\w+)\.ts'/g, "'$1.js'"))
}
