// `npm run format`: writes the house's format and the linter's safe fixes.
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { root } from './build.ts'

const biome = path.join(root, 'node_modules/@biomejs/biome/bin/biome')
const result = spawnSync(process.execPath, [biome, 'check', '--write', root], { cwd: root, stdio: 'inherit' })
process.exit(result.status ?? 1)
