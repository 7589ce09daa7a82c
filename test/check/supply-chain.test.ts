// Dependencies: no package of the lock files runs an install script, and each licence was reviewed.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')

interface Locked {
  readonly license?: string
  readonly hasInstallScript?: boolean
}
const packages = ['package-lock.json', 'scripts/node/package-lock.json'].flatMap((file) =>
  Object.entries((JSON.parse(read(file)) as { packages: Record<string, Locked> }).packages)
    .filter(([place]) => place !== '')
    .map(([place, locked]) => ({ name: place.replace(/^.*node_modules\//, ''), ...locked })),
)

/** Packages that have an install script and work without: installs use --ignore-scripts. A new one is reviewed first. */
const scripts: Readonly<Record<string, string>> = {
  '@scarf/scarf': 'reports installations to its makers; swagger-ui-dist names it and does not use it',
  'cpu-features': 'would be compiled, for ssh2 to choose a faster cipher',
  esbuild: 'checks that its program starts, which the build notices',
  ssh2: 'would compile faster ciphers',
}

/** Includes tools; the contents of a release are in its sbom.cdx.json. */
const licences = [
  '(MIT AND Zlib)',
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT OR Apache-2.0',
  'MPL-2.0',
  'OFL-1.1',
  'PSF-2.0',
  'Unlicense',
]
/** MIT by their package.json, in an old form that the lock file lacks. */
const withoutField = ['buildcheck', 'cpu-features', 'ssh2']

test('no package of the lock files has an install script that was not looked at, and none is run', () => {
  const found = new Set(packages.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name))
  assert.deepEqual([...found].sort(), Object.keys(scripts).sort())
  const installs = read('scripts/prepare.mjs').match(/\[\s*'(?:ci|install)'[^\]]*\]/g) ?? []
  assert.equal(installs.length, 2)
  for (const install of installs) assert.match(install, /'--ignore-scripts'/)
})

test('every package of the lock files has a licence that was looked at', () => {
  const unknown = packages.filter(({ name, license }) =>
    license === undefined ? !withoutField.includes(name) : !licences.includes(license),
  )
  assert.deepEqual(unknown, [])
})
