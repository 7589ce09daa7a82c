// Records the session of the README on the service that `npm start` runs, and draws it as docs/images/demo.svg: what a
// terminal shows, in the time it took. Pauses of more than two seconds are cut to two.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { root } from './build.ts'

const commands = [
  'svc3 vm deploy demo --image tiny-amd64',
  'echo admin | svc3 vm ssh demo --password-stdin -- uname -a',
  'svc3 vm save demo tools --wait',
  'svc3 vm deploy second --image tools',
  'svc3 vm list',
  'svc3 vm delete demo second --yes',
]

interface Line {
  readonly text: string
  readonly isCommand: boolean
  /** When it appears. */
  readonly atSeconds: number
}

/** What clears a line. */
const clearLine = '\x1b[2K'

/** The final contents of a terminal of 100 columns, without the lines that were erased. */
async function run(command: string): Promise<{ lines: string[]; seconds: number }> {
  const env = { ...process.env, PATH: `${path.join(root, 'bin')}:${process.env.PATH}`, NO_COLOR: '1', COLUMNS: '100' }
  const started = performance.now()
  const child = spawn('script', ['-qec', `stty cols 100; ${command}`, '/dev/null'], { cwd: root, env })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output}`)
  const seconds = (performance.now() - started) / 1_000
  const lines = output
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => line.replaceAll(clearLine, '\r').split('\r').at(-1)?.trimEnd() ?? '')
  return { lines: lines.filter((line) => line !== ''), seconds }
}

async function record(): Promise<Line[]> {
  const recorded: Line[] = []
  let at = 0.5
  for (const command of commands) {
    recorded.push({ text: command, isCommand: true, atSeconds: at })
    const { lines, seconds } = await run(command)
    at += 0.6 + Math.min(seconds, 2)
    for (const text of lines) recorded.push({ text, isCommand: false, atSeconds: at })
    at += 0.8
  }
  return recorded
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll(' ', '\u00a0')

function draw(lines: readonly Line[]): string {
  const [rowHeight, top, width] = [20, 44, 860]
  const height = top + lines.length * rowHeight + 12
  const rows = lines.map(({ text, isCommand, atSeconds }, row) => {
    const prompt = isCommand ? '<tspan class="prompt">$ </tspan>' : ''
    const style = `animation-delay:${atSeconds.toFixed(1)}s`
    return `  <text class="${isCommand ? 'command' : 'output'}" style="${style}" x="16" y="${top + row * rowHeight}">${prompt}${escaped(text)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="A terminal: deploy a VM, run a command in it, save it, deploy the saved image, delete both">
  <style>
    rect { fill: #0d1117; }
    circle { fill: #30363d; }
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; opacity: 0; animation: show 0.01s linear forwards; }
    .command { fill: #e6edf3; }
    .output { fill: #9ea7b3; }
    .prompt { fill: #3fb950; }
    @keyframes show { to { opacity: 1; } }
    @media (prefers-reduced-motion: reduce) { text { animation: none; opacity: 1; } }
  </style>
  <rect width="${width}" height="${height}" rx="8"/>
  <circle cx="18" cy="16" r="5"/><circle cx="36" cy="16" r="5"/><circle cx="54" cy="16" r="5"/>
${rows.join('\n')}
</svg>
`
}

await fs.writeFile(path.join(root, 'docs/images/demo.svg'), draw(await record()))
console.log('wrote docs/images/demo.svg')
