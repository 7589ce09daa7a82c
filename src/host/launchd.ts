// launchd's property list for a service of svc3, on macOS. `AbandonProcessGroup` keeps VMs running when the agent ends,
// and `KeepAlive` restarts a service that fails. launchd does not rotate logs, so the program does (SVC3_LOG_FILE).
import { screenRuleFile } from './screen-rule.ts'
import { type ServiceDefinition, type ServiceFile, type ServiceKind, serviceNames } from './service.ts'

export const daemonFolder = '/Library/LaunchDaemons'
export const labels: Readonly<Record<ServiceKind, string>> = { agent: 'io.svc3.agent', server: 'io.svc3.server' }
export const logFolder = (kind: ServiceKind): string => `/Library/Logs/${serviceNames[kind]}`
export const logFile = (kind: ServiceKind): string => `${logFolder(kind)}/${serviceNames[kind]}.log`

type Value = string | number | boolean | readonly string[] | { readonly [key: string]: Value }

/** Includes Homebrew's folders (tart, QEMU), which are not in launchd's default. */
const searchPath = '/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'

export const launchdList = ({ kind, command, user, dataDir }: ServiceDefinition): string =>
  propertyList(kind, {
    Label: labels[kind],
    ProgramArguments: command,
    UserName: user,
    WorkingDirectory: dataDir,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: 5,
    ...(kind === 'agent' && { AbandonProcessGroup: true }),
    ProcessType: 'Interactive',
    ExitTimeOut: 60,
    Umask: 0o077,
    SoftResourceLimits: { NumberOfFiles: 65_536 },
    EnvironmentVariables: { PATH: searchPath, SVC3_LOG_FILE: logFile(kind) },
    StandardOutPath: logFile(kind),
    StandardErrorPath: logFile(kind),
  })

const propertyList = (kind: ServiceKind, value: Value): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by svc3 ${kind} install. Upgrades overwrite changes. -->
<plist version="1.0">
${element(value)}
</plist>
`

export const launchdFiles = (service: ServiceDefinition): readonly ServiceFile[] => [
  { path: `${daemonFolder}/${labels[service.kind]}.plist`, text: launchdList(service), mode: 0o644 },
  ...(service.kind === 'agent' ? screenRuleFiles(service) : []),
]

export const screenRuleLabel = 'io.svc3.agent.screens'
/** Below Apple's anchor, which /etc/pf.conf evaluates: updates of macOS replace that file. */
const anchor = 'com.apple/io.svc3.agent'
const ruleFile = '/etc/pf.anchors/io.svc3.agent'

const releasePf = `token=$(sed -n 's/^Token : //p' ${screenRuleFile} 2> /dev/null || true)
rm -f ${screenRuleFile}
[ -z "$token" ] || pfctl -q -X "$token" || true`

/** Fails until /etc/pf.conf is loaded, and launchd tries again. pf stays enabled while its token is not released. */
const loadRule = `set -eu
umask 022
pfctl -q -a ${anchor} -f ${ruleFile}
pfctl -s rules 2> /dev/null | grep -qF '"com.apple/*"'
${releasePf}
{ sysctl -n kern.bootsessionuuid; pfctl -E 2>&1; } > ${screenRuleFile}.new
grep -q '^Token : ' ${screenRuleFile}.new
mv ${screenRuleFile}.new ${screenRuleFile}`

export const unloadRule = `pfctl -q -a ${anchor} -F all
${releasePf}`

/**
 * The framework opens the screens of VMs on every interface and on ports that it chooses, so the rule names the owner of
 * the sockets. Only new connections are blocked: connections of the agent itself have local ports of the same range, and
 * without flags the answers of the server would be blocked, too. The agent reaches the screens over lo0.
 */
const screenRuleFiles = ({ user }: ServiceDefinition): readonly ServiceFile[] => [
  {
    path: ruleFile,
    text: `# Written by svc3 agent install. Upgrades overwrite changes.
block drop in quick on ! lo0 proto tcp from any to any port 49152:65535 user ${user} flags S/SA
`,
    mode: 0o644,
  },
  {
    path: `${daemonFolder}/${screenRuleLabel}.plist`,
    text: propertyList('agent', {
      Label: screenRuleLabel,
      ProgramArguments: ['/bin/sh', '-c', loadRule],
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ThrottleInterval: 5,
      EnvironmentVariables: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
    }),
    mode: 0o644,
  },
]

function element(value: Value): string {
  if (typeof value === 'boolean') return `<${value}/>`
  if (typeof value === 'number') return `<integer>${value}</integer>`
  if (typeof value === 'string') return `<string>${escaped(value)}</string>`
  if (isList(value)) return `<array>\n${value.map(element).join('\n')}\n</array>`
  const entries = Object.entries(value).map(([key, each]) => `<key>${escaped(key)}</key>\n${element(each)}`)
  return `<dict>\n${entries.join('\n')}\n</dict>`
}

const isList = (value: Value): value is readonly string[] => Array.isArray(value)

function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\x00-\x08\x0b-\x1f]/.test(text)) throw new Error(`${JSON.stringify(text)} cannot be in a property list`)
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
