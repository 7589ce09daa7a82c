// Where this program was installed from: the folder that holds package.json, above src/ or dist/; and whether that is a
// checkout, which can be built and keeps its own data, or a package that npm or another installed.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

export function checkoutFolder(): string {
  let folder = import.meta.dirname
  while (!fs.existsSync(path.join(folder, 'package.json')) && folder !== path.dirname(folder))
    folder = path.dirname(folder)
  return folder
}

/** Packages come without what builds them. */
export const isCheckout = (folder: string): boolean => fs.existsSync(path.join(folder, 'scripts', 'prepare.mjs'))

/** Where `svc3 dev` keeps its data when nobody says another place. */
export const usualDataDir = (folder = checkoutFolder()): string =>
  path.join(isCheckout(folder) ? folder : os.homedir(), '.svc3')
