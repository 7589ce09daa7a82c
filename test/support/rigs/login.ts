// Logging in with the real command line as a process, and Chromium on the provider's pages.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { program, root, svc3 } from '../processes/dev-server.ts'

/** The test's own time limit ends a wait that never completes. */
const timeoutMs = 150_000

export async function launchBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    timeout: timeoutMs,
  })
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async (options) => {
    const context = await newContext(options)
    context.setDefaultTimeout(timeoutMs)
    return context
  }
  return browser
}

interface LoginProcess {
  /** Every http address that it printed, in order. */
  readonly addresses: readonly string[]
  /** The code of a device login. */
  readonly code: string
  readonly ended: Promise<{ code: number; stdout: string; stderr: string }>
  readonly pid: number
  interrupt(): void
}

/** Runs `svc3 login …` up to the point where it waits for the user. */
export async function startLogin(args: readonly string[], env: Record<string, string>): Promise<LoginProcess> {
  const child = spawn(program, ['login', '--force', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (said.stdout += chunk))
  const ended = once(child, 'close').then(([code]) => ({ code: Number(code), ...said }))
  const waiting = new Promise<void>((resolve) => {
    child.stderr.on('data', (chunk) => {
      said.stderr += chunk
      if (said.stderr.includes('Press Ctrl-C to cancel')) resolve()
    })
  })
  await Promise.race([waiting, ended])
  assert.match(said.stderr, /Press Ctrl-C to cancel/, said.stderr)
  return {
    addresses: said.stderr.match(/https?:\/\/\S+/g) ?? [],
    code: /^ {2}([A-Z]{4}-[A-Z]{4})$/m.exec(said.stderr)?.[1] ?? '',
    ended,
    pid: child.pid ?? 0,
    interrupt: () => void child.kill('SIGINT'),
  }
}

/** Fills in the form of the built-in provider. */
export async function fillLogin(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** Policy violations and other messages in the browser's console. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return complaints
}

const folder = process.env.SVC3_SCREENSHOTS
/** Pictures were requested. */
export const isPictured = folder !== undefined

export async function screenshot(page: Page, name: string): Promise<void> {
  // Hiding the caret would need an inline style, which the console's policy refuses.
  if (folder) await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true, caret: 'initial' })
}

interface StoredLogin {
  token: string
  tokenExpiresAt: string
  refreshToken: string
  issuer: string
  apiUrl: string
}

const configIn = (home: string): string => path.join(home, 'svc3', 'config.json')

/** The current context of the configuration file. */
export async function storedLogin(home: string): Promise<StoredLogin> {
  const config = JSON.parse(await fs.readFile(configIn(home), 'utf8'))
  return config.contexts[config.currentContext]
}

/** As if the time had passed. */
export async function expireStoredToken(home: string, tokenExpiresAt = '2020-01-01T00:00:00Z'): Promise<void> {
  const config = JSON.parse(await fs.readFile(configIn(home), 'utf8'))
  config.contexts[config.currentContext].tokenExpiresAt = tokenExpiresAt
  await fs.writeFile(configIn(home), JSON.stringify(config))
}

export async function setPassword(dataDir: string, email: string, password: string): Promise<void> {
  const args = ['server', 'users', 'reset', email, '--password-stdin', '--data', dataDir]
  const { code, stderr } = await svc3(args, { input: `${password}\n` })
  assert.equal(code, 0, stderr)
}
