// Finds the program of a worker thread.
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Looks for TypeScript beside the caller in the source tree; in a bundle, beside it or above its chunks. */
export function findThread(name: string, callerUrl: string): URL {
  const places = [`./${name}.ts`, `./${name}.mjs`, `../${name}.mjs`].map((place) => new URL(place, callerUrl))
  const found = places.find((place) => fs.existsSync(fileURLToPath(place)))
  if (!found) throw new Error(`No ${name} beside ${fileURLToPath(callerUrl)}: build svc3 again`)
  return found
}
