// systemd's unit for a service of svc3. The agent's VMs are processes that outlive it: `KillMode=process` leaves them
// alone, and nothing here may put them, or where they keep their sockets, into a place that ends with the service.
import { type ServiceDefinition, type ServiceFile, type ServiceKind, serviceNames, summaries } from './service.ts'

const unitFolder = '/etc/systemd/system'

type Lines = readonly (readonly [name: string, value: string])[]

/** For both. */
const hardening: Lines = [
  ['UMask', '0077'],
  ['NoNewPrivileges', 'yes'],
  ['ProtectSystem', 'strict'],
  ['ProtectHome', 'read-only'],
  ['ProtectKernelTunables', 'yes'],
  ['ProtectKernelModules', 'yes'],
  ['ProtectKernelLogs', 'yes'],
  ['ProtectControlGroups', 'yes'],
  ['ProtectClock', 'yes'],
  ['ProtectHostname', 'yes'],
  ['RestrictSUIDSGID', 'yes'],
  ['RestrictRealtime', 'yes'],
  ['LockPersonality', 'yes'],
  ['SystemCallArchitectures', 'native'],
  ['RemoveIPC', 'no'],
]

/** VMs' sockets are in /tmp; the server has one of its own. */
const places: Readonly<Record<ServiceKind, readonly string[]>> = { agent: ['/tmp', '/var/tmp'], server: [] }

const byKind: Readonly<Record<ServiceKind, Lines>> = {
  agent: [
    ['KillMode', 'process'],
    ['SendSIGKILL', 'no'],
    // VMs' sockets are in /tmp, and the next agent has to find them there.
    ['PrivateTmp', 'no'],
    ['DevicePolicy', 'closed'],
    ['DeviceAllow', '/dev/kvm rw'],
    ['DeviceAllow', '/dev/net/tun rw'],
    // Guests' networks are sealed in namespaces of their own; nothing else is needed of those.
    ['RestrictNamespaces', 'user net mnt'],
    ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6 AF_NETLINK'],
    // A host that runs out of memory ends a VM before its agent.
    ['OOMScoreAdjust', '-500'],
    ['OOMPolicy', 'continue'],
    ['TasksMax', 'infinity'],
    ['LimitNOFILE', '65536'],
  ],
  server: [
    ['KillMode', 'mixed'],
    ['PrivateTmp', 'yes'],
    ['PrivateDevices', 'yes'],
    ['RestrictNamespaces', 'yes'],
    ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6'],
    ['CapabilityBoundingSet', ''],
    ['SystemCallFilter', '@system-service'],
    ['LimitNOFILE', '65536'],
  ],
}

export function systemdUnit(service: ServiceDefinition): string {
  const { kind, command, user, groups, dataDir, writes } = service
  const sections: readonly (readonly [string, Lines])[] = [
    [
      'Unit',
      [
        ['Description', summaries[kind]],
        ['Wants', 'network-online.target'],
        ['After', 'network-online.target'],
        // A server that is away for an hour is no reason to give up.
        ['StartLimitIntervalSec', '0'],
      ],
    ],
    [
      'Service',
      [
        ['Type', 'notify'],
        // systemd-notify tells it, as a child of ours.
        ['NotifyAccess', 'all'],
        ['ExecStart', command.map(systemdWord).join(' ')],
        ['Restart', 'on-failure'],
        ['RestartSec', '5'],
        ['TimeoutStartSec', '300'],
        ['TimeoutStopSec', '60'],
        ['User', user],
        ...(groups.length > 0 ? ([['SupplementaryGroups', groups.join(' ')]] as const) : []),
        ['WorkingDirectory', pathValue(dataDir)],
        ['ReadWritePaths', [dataDir, ...writes, ...places[kind]].map(systemdWord).join(' ')],
        ...hardening,
        ...byKind[kind],
      ],
    ],
    ['Install', [['WantedBy', 'multi-user.target']]],
  ]
  const text = sections.map(
    ([name, lines]) => `[${name}]\n${lines.map(([key, value]) => `${key}=${value}\n`).join('')}`,
  )
  return `# Written by svc3 ${kind} install. Upgrades overwrite changes; use a drop-in instead:\n# systemctl edit ${serviceNames[kind]}\n${text.join('\n')}`
}

export const systemdFiles = (service: ServiceDefinition): readonly ServiceFile[] => [
  { path: `${unitFolder}/${serviceNames[service.kind]}.service`, text: systemdUnit(service), mode: 0o644 },
]

const plain = /^[A-Za-z0-9_@:=,./+-]+$/
/** A word of a command line. `%` begins a specifier, `$` a variable. */
export function systemdWord(word: string): string {
  refuseControl(word)
  const text = word.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return plain.test(text) ? text : `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** A value that is one path takes all of the line. */
function pathValue(path: string): string {
  refuseControl(path)
  return path.replaceAll('%', '%%')
}

function refuseControl(word: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\x00-\x1f\x7f]/.test(word)) throw new Error(`${JSON.stringify(word)} cannot be in a unit of systemd`)
}
