// Opens a page in the user's browser, if there is one.
import childProcess from 'node:child_process'
import type { Host } from '../host.ts'

const openers: Readonly<Record<string, string>> = { darwin: 'open', linux: 'xdg-open', win32: 'explorer.exe' }

/** Whether a window would be visible to the user. */
export const hasBrowser = ({ env }: Pick<Host, 'env'>): boolean =>
  process.platform === 'linux' ? Boolean(env.DISPLAY || env.WAYLAND_DISPLAY) : process.platform in openers

/** Does not wait, and ignores failures, because the address is printed too. */
export function openBrowser({ env }: Pick<Host, 'env'>, url: string): void {
  const opener = openers[process.platform]
  if (!opener) return
  const options = { stdio: 'ignore', detached: true, env: withoutOurs(env) } as const
  const child = childProcess.spawn(opener, [url], options)
  child.on('error', () => undefined)
  child.unref()
}

/** Keeps tokens and keys from the browser and its child processes. */
const withoutOurs = (env: Host['env']): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^(svc3|orka)_/i.test(name)))
