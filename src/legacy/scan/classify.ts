// What of all that looks like a legacy call is one, and how sure that is. A path that other services have too needs
// evidence: that the same service is surely meant elsewhere, or that its name, or the file, says so.
import type { Constants } from './constants.ts'
import type { Candidate, Confidence, Finding, ScanOptions } from './finding.ts'
import { callBy } from './match.ts'

const product = /orka|macstadium/i
/** Names that say nothing about the service. */
const neutral =
  /^(?:expression|url|uri|base|base_?url|base_?uri|endpoint|host|api|api_?url|address|server|root|prefix|hostname|target|baseUrl|apiUrl)$/i
const others =
  /github|gitlab|vault|keycloak|sso|k8s|kube|nexus|sonar|grafana|graph|registry|elastic|auth0|okta|idp|issuer|oauth|slack|jira|hook|metrics|prometheus|consul|docker|npm|artifactory|\bci_/i
const libraries =
  /^(?:requests|axios|http|https|fetch|got|ky|session|client|curl|request|HTTParty|Faraday|RestClient|superagent|rest|httpx|urllib|net|api|app|get|post|put|delete|call|this|self|written|openapi|stub_request)$/

const keyOf = ({ match, receiver }: Candidate): string =>
  match.baseKind === 'none' ? (receiver === '' ? '' : `()${receiver}`) : match.base
const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/') + 1)
/** Its own, and those that this one is in. */
const foldersAround = (file: string): string[] =>
  file.split('/').map((_, depth, names) => names.slice(0, depth).join('/') + (depth === 0 ? '' : '/'))

/** Where a service is surely meant. */
interface Places {
  readonly files: Set<string>
  readonly folders: Set<string>
  readonly around: Set<string>
}

interface Context {
  readonly constants: Constants
  /** Whether a file is about this service. */
  readonly mentionsProduct: (file: string) => boolean
  readonly options: ScanOptions
}

export function classify(candidates: readonly Candidate[], context: Context): Finding[] {
  const certain = candidates.filter(({ match }) => !match.isGeneric)
  const placesOf = new Map<string, Places>()
  for (const candidate of certain) {
    const key = keyOf(candidate)
    if (key === '') continue
    const places = placesOf.get(key) ?? { files: new Set(), folders: new Set(), around: new Set() }
    placesOf.set(key, places)
    places.files.add(candidate.file)
    places.folders.add(folderOf(candidate.file))
    for (const folder of foldersAround(candidate.file)) places.around.add(folder)
  }
  const withCertain = new Set(certain.map(({ file }) => file))
  const seen = new Set<string>()
  return candidates.flatMap((candidate): Finding[] => {
    const call = callBy(candidate.match, candidate.method)
    if (!call || isElsewhere(candidate, context)) return []
    const evidence = candidate.match.isGeneric
      ? evidenceOf(candidate, placesOf.get(keyOf(candidate)), withCertain.has(candidate.file), context)
      : 'certain'
    const { file, line, column, text } = candidate
    const key = `${file}\0${line}\0${call.found.call.method} ${call.found.call.path}`
    if (evidence === undefined || seen.has(key)) return []
    seen.add(key)
    const isPlain =
      !call.isGuess && candidate.receiver !== 'written' && (candidate.isRequest || candidate.match.baseKind !== 'none')
    const confidence = isPlain || evidence === 'possible' ? evidence : 'likely'
    return [{ ...call.found, file, line, column, text, confidence }]
  })
}

const withoutScheme = (address: string): string => address.replace(/^(?:https?:)?\/\//i, '').replace(/(?<!\/)\/+$/, '')
const isSame = (address: string, baseUrl: string): boolean =>
  `${withoutScheme(address)}/`.startsWith(`${withoutScheme(baseUrl)}/`)

/** Where a call goes, as far as it is written down. */
function addressOf({ match: { base, baseKind }, file }: Candidate, constants: Constants): string | undefined {
  return baseKind === 'address'
    ? base
    : baseKind === 'name'
      ? constants.addressOf(base.split('/')[0] ?? '', file)
      : undefined
}

function isElsewhere(candidate: Candidate, { constants, options: { baseUrl } }: Context): boolean {
  const address = baseUrl === undefined ? undefined : addressOf(candidate, constants)
  return (
    baseUrl !== undefined &&
    address !== undefined &&
    /^(?:https?:)?\/\/[\w.-]/.test(address) &&
    !isSame(address, baseUrl)
  )
}

function evidenceOf(
  candidate: Candidate,
  places: Places | undefined,
  isAmongCertain: boolean,
  context: Context,
): Confidence | undefined {
  const { match, file, receiver, isRequest } = candidate
  const { base, baseKind } = match
  const address = addressOf(candidate, context.constants)
  const { baseUrl } = context.options
  if (baseUrl !== undefined && address !== undefined && isSame(address, baseUrl)) return 'certain'
  if (places?.files.has(file)) return 'certain'
  const isNamed =
    baseKind !== 'none' &&
    !base.replace(/^\/\//, '').includes('/') &&
    (product.test(base) || product.test(address ?? ''))
  if (isNamed) return 'certain'
  if (baseKind === 'address') return places ? 'certain' : undefined
  if (candidate.mentionsProduct) return 'likely'
  const isNear = places?.around.has(folderOf(file)) || foldersAround(file).some((folder) => places?.folders.has(folder))
  if (isNear && !(baseKind === 'none' && libraries.test(receiver)) && !neutral.test(base)) return 'likely'
  if (!isRequest || !match.isRooted || !context.mentionsProduct(file)) return undefined
  if (address !== undefined && /^(?:https?:)?\/\/[\w.-]/.test(address)) return undefined
  if (baseKind === 'name' && (neutral.test(base) || (!isAmongCertain && !others.test(base) && !base.includes('/'))))
    return 'possible'
  return baseKind === 'none' && !isAmongCertain ? 'possible' : undefined
}
