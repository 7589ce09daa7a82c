// `npm start`: builds, then becomes `svc3 dev` with the options given after `--`.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildProgram, root } from './build.ts'

await buildProgram()
const program = path.join(root, 'dist', 'svc3.cjs')
process.argv = [process.execPath, program, 'dev', ...process.argv.slice(2)]
await import(pathToFileURL(program).href)
