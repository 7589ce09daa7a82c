// `npm start`: builds what is not built yet, then becomes `svc3 dev` with the options given after `--`.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { isBuilt, root } from './sources.ts'

// Programs of this checkout that run are not to find the folder of the build gone for a moment, and a start is quicker.
if (!isBuilt()) {
  process.stderr.write('svc3: Building the service and its console\n')
  await (await import('./build.ts')).buildProgram()
}
const program = path.join(root, 'dist', 'svc3.cjs')
// The lines to paste that it prints begin as they would be typed here.
const own = path.join(root, 'bin', 'svc3')
const near = path.relative(process.cwd(), own)
process.env.SVC3_CALLED_AS = near.startsWith('..') || !near.includes('/') ? own : near
process.argv = [process.execPath, program, 'dev', ...process.argv.slice(2)]
await import(pathToFileURL(program).href)
