// What of all that looks like a legacy call is one, and how sure that is. A path that other services have too needs
// evidence: that the same service is surely meant elsewhere, or that its name, or the file, says so.
import type { Constants } from './constants.ts'
import type { Confidence, Finding, Hit, ScanOptions } from './finding.ts'
import { callBy } from './match.ts'

const product = /orka|macstadium/i
/** Names that say nothing about the service. */
const neutral =
  /^(?:expression|url|uri|base|base_?url|base_?uri|endpoint|host|api|api_?url|address|server|root|prefix|hostname|target|baseUrl|apiUrl)$/i
const others =
  /github|gitlab|vault|keycloak|sso|k8s|kube|nexus|sonar|grafana|graph|registry|elastic|auth0|okta|idp|issuer|oauth|slack|jira|hook|metrics|prometheus|consul|docker|npm|artifactory|\bci_/i
const libraries =
  /^(?:requests|axios|http|https|fetch|got|ky|session|client|curl|request|HTTParty|Faraday|RestClient|superagent|rest|httpx|urllib|net|api|app|get|post|put|delete|call|this|self|written|openapi|stub_request)$/

const keyOf = ({ match, receiver }: Hit): string =>
  match.baseKind === 'none' ? (receiver === '' ? '' : `()${receiver}`) : match.base
const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/') + 1)

interface Context {
  readonly constants: Constants
  /** Whether a file is about this service. */
  readonly isAbout: (file: string) => boolean
  readonly options: ScanOptions
}

export function judged(hits: readonly Hit[], context: Context): Finding[] {
  const certain = hits.filter(({ match }) => !match.isGeneric)
  const filesOf = new Map<string, Set<string>>()
  for (const hit of certain) {
    const key = keyOf(hit)
    if (key !== '') filesOf.set(key, (filesOf.get(key) ?? new Set()).add(hit.file))
  }
  const withCertain = new Set(certain.map(({ file }) => file))
  const seen = new Set<string>()
  return hits.flatMap((hit): Finding[] => {
    const call = callBy(hit.match, hit.method)
    if (!call || isElsewhere(hit, context)) return []
    const evidence = hit.match.isGeneric ? evidenceOf(hit, filesOf, withCertain.has(hit.file), context) : 'certain'
    const { file, line, column, text } = hit
    const key = `${file}\0${line}\0${call.found.call.method} ${call.found.call.path}`
    if (evidence === undefined || seen.has(key)) return []
    seen.add(key)
    const isPlain = !call.isGuess && hit.receiver !== 'written' && (hit.isRequest || hit.match.baseKind !== 'none')
    const confidence = isPlain || evidence === 'possible' ? evidence : 'likely'
    return [{ ...call.found, file, line, column, text, confidence }]
  })
}

const withoutScheme = (address: string): string => address.replace(/^(?:https?:)?\/\//i, '').replace(/\/+$/, '')
const isSame = (address: string, baseUrl: string): boolean =>
  `${withoutScheme(address)}/`.startsWith(`${withoutScheme(baseUrl)}/`)

/** Where a call goes, as far as it is written down. */
function addressOf({ match: { base, baseKind }, file }: Hit, constants: Constants): string | undefined {
  return baseKind === 'address'
    ? base
    : baseKind === 'name'
      ? constants.addressOf(base.split('/')[0] ?? '', file)
      : undefined
}

function isElsewhere(hit: Hit, { constants, options: { baseUrl } }: Context): boolean {
  const address = baseUrl === undefined ? undefined : addressOf(hit, constants)
  return (
    baseUrl !== undefined &&
    address !== undefined &&
    /^(?:https?:)?\/\/[\w.-]/.test(address) &&
    !isSame(address, baseUrl)
  )
}

function evidenceOf(
  hit: Hit,
  filesOf: ReadonlyMap<string, ReadonlySet<string>>,
  isAmongCertain: boolean,
  context: Context,
): Confidence | undefined {
  const { match, file, receiver, isRequest } = hit
  const { base, baseKind } = match
  const key = keyOf(hit)
  const address = addressOf(hit, context.constants)
  const { baseUrl } = context.options
  if (baseUrl !== undefined && address !== undefined && isSame(address, baseUrl)) return 'certain'
  const files = filesOf.get(key)
  if (files?.has(file)) return 'certain'
  const isNamed =
    baseKind !== 'none' &&
    !base.replace(/^\/\//, '').includes('/') &&
    (product.test(base) || product.test(address ?? ''))
  if (isNamed) return 'certain'
  if (baseKind === 'address') return files && files.size > 0 ? 'certain' : undefined
  if (hit.isAbout) return 'likely'
  const isNear = [...(files ?? [])].some(
    (other) => folderOf(file).startsWith(folderOf(other)) || folderOf(other).startsWith(folderOf(file)),
  )
  if (isNear && !(baseKind === 'none' && libraries.test(receiver)) && !neutral.test(base)) return 'likely'
  if (!isRequest || !match.isRooted || !context.isAbout(file)) return undefined
  if (address !== undefined && /^(?:https?:)?\/\/[\w.-]/.test(address)) return undefined
  if (baseKind === 'name' && (neutral.test(base) || (!isAmongCertain && !others.test(base) && !base.includes('/'))))
    return 'possible'
  return baseKind === 'none' && !isAmongCertain ? 'possible' : undefined
}
