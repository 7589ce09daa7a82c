// What comes before the command line is loaded: its first help, which the build has written down, and where compiled code
// is kept. svc3.ts imports it first, for what it does.
const { join } = process.getBuiltinModule('node:path')
const here = import.meta.dirname
const isBundled = !here.endsWith(join('src', 'bin'))

if (isBundled && isFirstHelp(process.argv.slice(2)) && printFirstHelp()) process.exit(0)
// Beside the bundle no other user can plant compiled code, and a new build starts without it.
if (isBundled) process.getBuiltinModule('node:module').enableCompileCache(join(here, 'cache'))

function isFirstHelp(words: readonly string[]): boolean {
  return words.length === 0 || (words.length === 1 && (words[0] === '--help' || words[0] === '-h'))
}

/** Nothing of the program is loaded for it. What keeps it from being shown, main tells. */
function printFirstHelp(): boolean {
  const fs = process.getBuiltinModule('node:fs')
  const file = process.env.SVC3_CALLED_AS ?? ''
  // Its lines are to begin like that, as in a checkout with bin/svc3.
  if (/^[^/]+\//.test(file)) return false
  const name = /(^|\/)orka3$/.test(file) ? 'orka3' : 'svc3'
  try {
    const text = fs.readFileSync(join(here, `help-${name}.txt`))
    return fs.writeSync(1, text) === text.length
  } catch {
    return false
  }
}
