// `npm run check`: types, lint, format, import rule, tables, generated files. The same tests are part of `npm test`.
import fs from 'node:fs'
import { root } from './build.ts'
import { runTests } from './test.ts'

process.exit(await runTests(fs.globSync('test/check/*.test.ts', { cwd: root }).sort()))
