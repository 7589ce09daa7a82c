// `npm run check`: types, lint, format, import rule, tables, generated files. The same tests are part of `npm test`.
import { runTests } from './test.ts'

process.exit(await runTests(['test/check/*.test.ts']))
