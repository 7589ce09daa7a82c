// systemd's unit for a service of svc3. VMs are processes that outlive the agent: `KillMode=process` keeps them running,
// and no setting may make them or their sockets end with the service.
import { type ServiceDefinition, type ServiceFile, type ServiceKind, serviceNames, summaries } from './service.ts'

const unitFolder = '/etc/systemd/system'

type Lines = readonly (readonly [name: string, value: string])[]

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

/** VMs have their sockets in /tmp. The server has a private /tmp. */
const temporaryFolders: Readonly<Record<ServiceKind, readonly string[]>> = { agent: ['/tmp', '/var/tmp'], server: [] }

const byKind: Readonly<Record<ServiceKind, Lines>> = {
  agent: [
    ['KillMode', 'process'],
    ['SendSIGKILL', 'no'],
    // The next agent finds the sockets of VMs in /tmp.
    ['PrivateTmp', 'no'],
    ['DevicePolicy', 'closed'],
    ['DeviceAllow', '/dev/kvm rw'],
    ['DeviceAllow', '/dev/net/tun rw'],
    // Networks of guests are isolated in namespaces. Other kinds of namespaces are not needed.
    ['RestrictNamespaces', 'user net mnt'],
    ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6 AF_NETLINK'],
    // If the host runs out of memory, a VM is killed rather than the agent.
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
        // The service is restarted without limit: its server or store may be down for an hour.
        ['StartLimitIntervalSec', '0'],
      ],
    ],
    [
      'Service',
      [
        ['Type', 'notify'],
        // A child process, systemd-notify, sends the notifications.
        ['NotifyAccess', 'all'],
        ['ExecStart', command.map(systemdWord).join(' ')],
        ['Restart', 'on-failure'],
        ['RestartSec', '5'],
        ['TimeoutStartSec', '300'],
        ['TimeoutStopSec', '60'],
        ['User', user],
        ...(groups.length > 0 ? ([['SupplementaryGroups', groups.join(' ')]] as const) : []),
        ['WorkingDirectory', pathValue(dataDir)],
        ['ReadWritePaths', [dataDir, ...writes, ...temporaryFolders[kind]].map(quotedPath).join(' ')],
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
/** Escapes a word of a command line, in which `%` begins a specifier and `$` a variable. */
export const systemdWord = (word: string): string => quotedPath(word.replaceAll('$', '$$$$'))

/** Escapes one path of a list, in which `$` has no meaning. */
function quotedPath(word: string): string {
  refuseControl(word)
  const text = word.replaceAll('%', '%%')
  return plain.test(text) ? text : `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** Escapes a path that is the whole value, which is not quoted. */
function pathValue(path: string): string {
  refuseControl(path)
  return path.replaceAll('%', '%%')
}

function refuseControl(word: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\x00-\x1f\x7f]/.test(word)) throw new Error(`${JSON.stringify(word)} cannot be in a unit of systemd`)
}
