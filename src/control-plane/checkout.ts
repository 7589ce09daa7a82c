// The folder in which this program is installed, and whether that is a checkout, which has its own data folder.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

export function checkoutFolder(): string {
  let folder = import.meta.dirname
  while (!fs.existsSync(path.join(folder, 'package.json')) && folder !== path.dirname(folder))
    folder = path.dirname(folder)
  return folder
}

const isCheckout = (folder: string): boolean => fs.existsSync(path.join(folder, 'scripts', 'prepare.mjs'))

export const usualDataDir = (folder = checkoutFolder()): string =>
  path.join(isCheckout(folder) ? folder : os.homedir(), '.svc3')
