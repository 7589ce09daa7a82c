// `agent.json`: settings of a node that are no options, because they are secret or rarely change. Read once at start,
// refused if others can read it, never logged or sent to the server.
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import type { AppleNetwork } from '../drivers/apple/launch.ts'
import { type MacosSettings, smcKeyProblem } from '../drivers/qemu/macos.ts'

export interface AgentSettings {
  readonly macos?: MacosSettings
  readonly apple?: AppleSettings
  /** Names of checks that do not keep macOS VMs from this node, because the operator knows better. */
  readonly ignoredChecks?: readonly string[]
}

/** What tart's guests get of the Mac. */
interface AppleSettings {
  /** The Mac's network card to connect guests to, such as `en0`. */
  readonly bridge?: string
  /** Networks that sealed guests may reach besides the internet. */
  readonly allow?: readonly string[]
  /** The operator accepts that other hosts can reach the screens, whose passwords are weak. */
  readonly screen?: 'open'
  /** Folders of the Mac that guests may have, with all below them. */
  readonly directories?: readonly string[]
}

/** The message never quotes the file. */
export class AgentSettingsError extends Error {
  override readonly name = 'AgentSettingsError'
}

interface SettingsLocation {
  readonly dataDir: string
  /** Default: the file in the data folder, which may be missing. */
  readonly configFile?: string | undefined
}

export async function readAgentSettings({ dataDir, configFile }: SettingsLocation): Promise<AgentSettings> {
  const file = configFile ?? path.join(dataDir, 'agent.json')
  const handle = await fs.open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' && configFile === undefined) return undefined
    throw new AgentSettingsError(`Cannot read the node configuration ${file} (${error.code})`)
  })
  if (!handle) return {}
  await using _ = handle
  const { mode, uid } = await handle.stat()
  const isOurs = uid === process.getuid?.() || uid === 0
  if ((mode & 0o077) !== 0 || !isOurs)
    throw new AgentSettingsError(
      `${file} may hold a secret, and others than this user can read or change it: run 'chmod 600 ${file}', as its owner`,
    )
  return parseAgentSettings(await handle.readFile('utf8'), file)
}

export function parseAgentSettings(text: string, file: string): AgentSettings {
  const wrong: Wrong = (problem) => new AgentSettingsError(`${file}: ${problem}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The error of JSON.parse quotes the text, which may be secret.
    throw wrong('it is not JSON')
  }
  const { macos, apple, ignoredChecks } = fieldsOf(value, 'it', ['macos', 'apple', 'ignoredChecks'], wrong)
  if (ignoredChecks !== undefined && !isTextList(ignoredChecks))
    throw wrong('ignoredChecks must be a list of names of checks')
  return {
    ...(macos !== undefined && { macos: parseMacos(macos, wrong) }),
    ...(apple !== undefined && { apple: parseApple(apple, wrong) }),
    ...(ignoredChecks !== undefined && { ignoredChecks }),
  }
}

const isTextList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

type Wrong = (problem: string) => AgentSettingsError

function parseApple(apple: unknown, wrong: Wrong): AppleSettings {
  const names = ['bridge', 'allow', 'screen', 'directories'] as const
  const { bridge, allow, screen, directories } = fieldsOf(apple, 'apple', names, wrong)
  // The name becomes part of an argument of tart, where "list" would list the interfaces instead.
  if (
    bridge !== undefined &&
    !(typeof bridge === 'string' && /^[A-Za-z][\w .-]{0,63}$/.test(bridge) && bridge !== 'list')
  )
    throw wrong('apple.bridge must be the name of a network interface, for example en0')
  const ranges: unknown = allow ?? []
  if (!Array.isArray(ranges) || !ranges.every(isRange))
    throw wrong('apple.allow must be a list of networks, for example 10.0.0.0/8')
  if (screen !== undefined && screen !== 'open') throw wrong('apple.screen must be "open", or be omitted')
  const folders: unknown = directories ?? []
  if (!isTextList(folders) || !folders.every(path.isAbsolute))
    throw wrong('apple.directories must be a list of absolute paths')
  return {
    ...(bridge !== undefined && { bridge }),
    ...(ranges.length > 0 && { allow: ranges }),
    ...(screen !== undefined && { screen }),
    ...(folders.length > 0 && { directories: folders }),
  }
}

function isRange(value: unknown): value is string {
  const [, address = '', bits = ''] = /^([\d.]+)\/(\d{1,2})$/.exec(String(value)) ?? []
  return typeof value === 'string' && net.isIPv4(address) && Number(bits) <= 32
}

/** The network of tart's guests, by the option --network and the settings. */
export function appleNetwork(
  requested: 'sealed' | 'user' | undefined,
  { bridge, allow }: AppleSettings = {},
): AppleNetwork {
  if (bridge !== undefined && requested !== undefined)
    throw new AgentSettingsError('Use either apple.bridge in the node configuration or --network')
  if (bridge !== undefined) return { kind: 'bridged', card: bridge }
  if (requested === 'sealed') return { kind: 'sealed', ...(allow && { allow }) }
  if (allow) throw new AgentSettingsError('Add --network sealed: apple.allow needs isolated guests')
  return { kind: 'shared' }
}

function parseMacos(macos: unknown, wrong: Wrong): MacosSettings {
  const given = fieldsOf(macos, 'macos', ['bootDisk', 'bootDiskFormat', 'smcKey', 'cpu'], wrong)
  const textOf = (name: keyof typeof given): string | undefined => {
    const found = given[name]
    if (found === undefined || (typeof found === 'string' && found !== '')) return found
    throw wrong(`macos.${name} must be a string`)
  }
  const bootDisk = textOf('bootDisk')
  const format = textOf('bootDiskFormat') ?? 'raw'
  const smcKey = textOf('smcKey')
  const cpu = textOf('cpu')
  if (bootDisk !== undefined && !path.isAbsolute(bootDisk)) throw wrong('macos.bootDisk must be an absolute path')
  if (format !== 'raw' && format !== 'qcow2') throw wrong('macos.bootDiskFormat must be raw or qcow2')
  const problem = smcKey === undefined ? undefined : smcKeyProblem(smcKey)
  if (problem !== undefined) throw wrong(`macos.smcKey: ${problem}`)
  return {
    ...(bootDisk !== undefined && { openCore: { file: bootDisk, format } }),
    ...(smcKey !== undefined && { smcKey }),
    ...(cpu !== undefined && { cpu }),
  }
}

function fieldsOf<const Name extends string>(
  value: unknown,
  what: string,
  names: readonly Name[],
  wrong: Wrong,
): Readonly<Partial<Record<Name, unknown>>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(`${what} must be an object`)
  const odd = Object.keys(value).find((name) => !names.some((known) => known === name))
  if (odd !== undefined) throw wrong(`Unknown field "${odd.slice(0, 50)}" in ${what}; use ${names.join(', ')}`)
  return value as Readonly<Partial<Record<Name, unknown>>>
}
