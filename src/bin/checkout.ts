// Where this program was installed from: the folder that holds package.json, above src/ or dist/.
import fs from 'node:fs'
import path from 'node:path'

export function checkoutFolder(): string {
  let folder = import.meta.dirname
  while (!fs.existsSync(path.join(folder, 'package.json')) && folder !== path.dirname(folder))
    folder = path.dirname(folder)
  return folder
}
