// Makes a fresh clone ready, then runs a task: `node scripts/prepare.mjs scripts/start.ts [options]`.
// Brings Node 24 where the machine's is older, installs exactly the locked dependencies when the lock changed, and
// hands over. Plain JavaScript that Node 20 runs; the tasks themselves are TypeScript on Node 24.
// Before the task: `--with SCRIPT`, which needs no dependencies and runs, with the same options, while they are
// installed; `--first SCRIPT`, which needs them and runs before the task, beside the former.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const scripts = path.dirname(fileURLToPath(import.meta.url))
const root = path.dirname(scripts)
const wantedMajor = 24
const say = (text) => process.stderr.write(`svc3: ${text}\n`)

/** Runs npm on the given Node, so that packages see the version that will run them. */
function npm(node, args, cwd) {
  const own = process.env.npm_execpath ?? ''
  const [command, prefix] = own.endsWith('npm-cli.js') ? [node, [own]] : ['npm', []]
  const result = spawnSync(command, [...prefix, ...args, '--no-update-notifier'], {
    cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (result.status !== 0) {
    say(`npm ${args.join(' ')} failed in ${cwd}${result.error ? `: ${result.error.message}` : ''}`)
    say('Check that the npm registry is reachable, then run the same command again')
    process.exit(1)
  }
}

const hashOf = (file) => createHash('sha256').update(fs.readFileSync(file)).digest('hex')
const readOr = (file, fallback) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : fallback)

/** Holds others off while this process installs; the lock of a process that died is taken over. */
function withInstallLock(work) {
  const lock = path.join(root, '.node', 'install.lock')
  const draft = `${lock}.${process.pid}`
  fs.mkdirSync(path.dirname(lock), { recursive: true })
  for (let waited = false; ; waited = true) {
    try {
      // A link is atomic, so a lock file always names its holder.
      fs.writeFileSync(draft, String(process.pid))
      fs.linkSync(draft, lock)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
      const holder = Number(readOr(lock, '0'))
      if (holder > 0 && !isAlive(holder)) fs.rmSync(lock, { force: true })
      else if (!waited) say(`Waiting for another installation in this checkout (process ${holder})`)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    } finally {
      fs.rmSync(draft, { force: true })
    }
  }
  try {
    return work()
  } finally {
    fs.rmSync(lock, { force: true })
  }
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The Node to run on: this one when it is new enough, otherwise one that npm brings into `.node/`. */
function ensureNode() {
  if (Number(process.versions.node.split('.')[0]) >= wantedMajor) return process.execPath
  const home = path.join(root, '.node')
  const name = `node-${process.platform}-${process.arch}`
  const node = path.join(home, 'node_modules', name, 'bin', 'node')
  const source = path.join(scripts, 'node')
  const { optionalDependencies } = JSON.parse(fs.readFileSync(path.join(source, 'package.json'), 'utf8'))
  const version = optionalDependencies[name]
  if (!version) {
    say(`svc3 needs Node ${wantedMajor} or newer; this machine has Node ${process.versions.node}`)
    say(
      `Install Node ${wantedMajor} from nodejs.org (npm has none for ${process.platform} ${process.arch}), then try again`,
    )
    process.exit(1)
  }
  const stamp = path.join(home, 'installed')
  const lock = hashOf(path.join(source, 'package-lock.json'))
  if (!fs.existsSync(node) || readOr(stamp, '') !== lock) {
    say(`Installing Node ${version} from npm into .node/ (this machine has ${process.versions.node}, which stays)`)
    for (const file of ['package.json', 'package-lock.json'])
      fs.copyFileSync(path.join(source, file), path.join(home, file))
    npm(process.execPath, ['ci', '--ignore-scripts', '--loglevel=error'], home)
    fs.writeFileSync(stamp, lock)
  }
  return node
}

/** `npm ci`, only when the lock file is not the one that was installed. */
function ensureDependencies(node) {
  const stamp = path.join(root, 'node_modules', '.svc3-installed')
  const wanted = hashOf(path.join(root, 'package-lock.json'))
  if (readOr(stamp, '') === wanted) return
  say('Installing dependencies from npm (npm ci)')
  npm(node, ['ci', '--include=dev', '--ignore-scripts', '--loglevel=error'], root)
  fs.writeFileSync(stamp, wanted)
}

/** `bin/svc3` is a shell script that does not search: it runs the target of this link. */
function linkNode(node) {
  const link = path.join(root, '.node', 'bin', 'node')
  fs.mkdirSync(path.dirname(link), { recursive: true })
  if (fs.existsSync(link) && fs.realpathSync(link) === fs.realpathSync(node)) return
  fs.rmSync(link, { force: true })
  fs.symlinkSync(node, link)
}

/** Runs the task and takes its place: signals go through, its exit code is ours, and it ends when our parent does. */
function handOver(node, args) {
  const child = spawn(node, args, { cwd: process.env.INIT_CWD ?? process.cwd(), stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  // A terminal that closes ends us; without one (nohup) it is nothing to us.
  process.on('SIGHUP', () => process.stdin.isTTY && child.kill('SIGTERM'))
  const parent = process.ppid
  const orphaned = setInterval(() => process.ppid !== parent && child.kill('SIGTERM'), 500)
  orphaned.unref()
  child.on('exit', (code, signal) => process.exit(signal ? 128 + (signal === 'SIGINT' ? 2 : 15) : (code ?? 1)))
}

/** Resolves with its exit code. */
function runScript(node, script, args) {
  const child = spawn(node, [path.resolve(root, script), ...args], { stdio: 'inherit' })
  return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
}

const words = process.argv.slice(2)
const flag = (name) => (words[0] === name ? words.splice(0, 2)[1] : undefined)
const [beside, first] = [flag('--with'), flag('--first')]
const [task, ...options] = words
const running = []
const node = withInstallLock(() => {
  const found = ensureNode()
  if (beside) running.push(runScript(found, beside, options))
  ensureDependencies(found)
  linkNode(found)
  return found
})
if (first) running.push(runScript(node, first, []))
const failed = (await Promise.all(running)).find((code) => code !== 0)
if (failed !== undefined) process.exit(failed)
if (task) handOver(node, [path.resolve(root, task), ...options])
