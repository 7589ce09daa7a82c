// Where the program of a thread is.
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'

/** From source it lies beside the caller as TypeScript; bundled, beside the bundle or above its chunks. */
export function findThread(name: string, callerUrl: string): URL {
  const places = [`./${name}.ts`, `./${name}.mjs`, `../${name}.mjs`].map((place) => new URL(place, callerUrl))
  const found = places.find((place) => fs.existsSync(fileURLToPath(place)))
  if (!found) throw new Error(`No ${name} beside ${fileURLToPath(callerUrl)}: build svc3 again`)
  return found
}
