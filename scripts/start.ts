// `npm start`, once the program is built: becomes `svc3 dev` with the options given after `--`.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './sources.ts'

const program = path.join(root, 'dist', 'svc3.cjs')
// The lines to paste that it prints begin as they would be typed here.
const own = path.join(root, 'bin', 'svc3')
const near = path.relative(process.cwd(), own)
process.env.SVC3_CALLED_AS = near.startsWith('..') || !near.includes('/') ? own : near
process.argv = [process.execPath, program, 'dev', ...process.argv.slice(2)]
await import(pathToFileURL(program).href)
