// What of others is in dist/: a bill of materials (CycloneDX, by `npm sbom`) and the licences, with their texts. Of the
// packages in the lock file only those that a bundle has taken something from, or that are served as they are.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { root } from './sources.ts'

/** The folder of the package that a bundled file is from: `node_modules/x`, or deeper; undefined for our own. */
export const packageOf = (file: string): string | undefined =>
  /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(path.relative(root, path.resolve(root, file)).replaceAll('\\', '/'))?.[0]

interface About {
  readonly name: string
  readonly version: string
  readonly license?: string
  /** As some packages still have it. */
  readonly licenses?: readonly { readonly type: string }[]
}

interface Bom {
  serialNumber?: string
  readonly metadata: { timestamp?: string; readonly component: { name: string } }
  components: { readonly 'bom-ref': string; scope?: string; properties?: unknown; licenses?: unknown }[]
  dependencies: { readonly ref: string; dependsOn: string[] }[]
}

/** `folders` are those that `packageOf` gives. */
export function writeInventory(outdir: string, folders: Iterable<string>): void {
  const packages = [...new Set(folders)]
    .map((folder) => ({ folder: path.join(root, folder), ...read(folder) }))
    .sort((a, b) => (a.ref < b.ref ? -1 : 1))
  fs.writeFileSync(path.join(outdir, 'sbom.cdx.json'), `${JSON.stringify(billOf(packages), null, 1)}\n`)
  const texts = packages.map(({ ref, license, folder }) => `${ref}: ${license}\n\n${licenceTexts(folder)}`)
  fs.writeFileSync(path.join(outdir, 'third-party-licenses.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`))
}

function read(folder: string): { readonly ref: string; readonly license: string } {
  const about = JSON.parse(fs.readFileSync(path.join(root, folder, 'package.json'), 'utf8')) as About
  const license = about.license ?? about.licenses?.map(({ type }) => type).join(' OR ')
  if (!license) throw new Error(`${folder} names no licence: look at it before it is shipped`)
  return { ref: `${about.name}@${about.version}`, license }
}

/** Without what would differ from build to build: the same sources make the same bytes. */
function billOf(packages: readonly { readonly ref: string; readonly license: string }[]): Bom {
  // Vite says that this is production, where npm leaves out what is for development.
  const args = ['sbom', '--package-lock-only', '--include=dev', '--sbom-format=cyclonedx', '--sbom-type=application']
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
  const bom = JSON.parse(
    execFileSync('npm', [...args, '--loglevel=error'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26, stdio }),
  ) as Bom
  delete bom.serialNumber
  delete bom.metadata.timestamp
  bom.metadata.component.name = 'svc3'
  const shipped = new Map(packages.map(({ ref, license }) => [ref, license]))
  bom.components = bom.components.filter((component) => shipped.has(component['bom-ref']))
  for (const component of bom.components) {
    // For npm all are for development, since releases are bundles.
    component.scope = 'required'
    delete component.properties
    component.licenses ??= [{ license: { id: shipped.get(component['bom-ref']) } }]
  }
  const listed = new Set(bom.components.map((component) => component['bom-ref']))
  const missing = [...shipped.keys()].filter((ref) => !listed.has(ref))
  if (missing.length > 0) throw new Error(`bundled, but not in the lock file: ${missing.join(', ')}`)
  bom.dependencies = bom.dependencies.filter(({ ref }) => shipped.has(ref))
  for (const each of bom.dependencies) each.dependsOn = each.dependsOn.filter((ref) => shipped.has(ref))
  return bom
}

const licenceTexts = (folder: string): string =>
  fs
    .readdirSync(folder)
    .filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
    .sort()
    .map((name) => fs.readFileSync(path.join(folder, name), 'utf8').trim())
    .join('\n\n')
    .concat('\n')
