// What a program of this host prints about itself, such as its version. It runs again only when its file has changed,
// because probes ask every half minute.
import { exec, findProgram } from '../platform/exec.ts'

const known = new Map<string, { readonly stamp: string; readonly output: Promise<string | undefined> }>()

/** Undefined if the program is not installed or fails. `program`: a name in the search path, or a path. */
export async function outputOf(program: string, argument: string, searchPath?: string): Promise<string | undefined> {
  const file = program.includes('/') ? { path: program, stamp: '' } : await findProgram(program, searchPath)
  if (!file) return undefined
  const key = `${file.path} ${argument}`
  const before = known.get(key)
  if (before?.stamp === file.stamp) return before.output
  const output = exec(file.path, argument.split(' '), { timeoutMs: 15_000 }).then(
    ({ stdout }) => stdout,
    () => {
      known.delete(key)
      return undefined
    },
  )
  known.set(key, { stamp: file.stamp, output })
  return output
}
